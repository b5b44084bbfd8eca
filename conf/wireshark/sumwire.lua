-- sumwire.lua - Wireshark dissector of sumwire's frames (PROTOCOL.md 1, 2, 13.5)
-- SPDX-License-Identifier: BSD-3-Clause
--
-- Wireshark loads it from the folder "Personal Lua Plugins" (Help, About, Folders);
-- tshark also with -X lua_script:sumwire.lua. It finds frames on any UDP port by their
-- magic, and filters by fields such as
--     sumwire.type == PUSH && sumwire.key.index == 3
--     sumwire.flags.retx == 1
-- It checks the CRCs that need no seed of a session: the header's of HELLO, COOKIE and
-- JOIN, and the payload's of control frames. Frames of a session whose JOIN named a key
-- have a tag in the place of both, and their JOIN and ACCEPT are encrypted.

local HEAD, CONTROL = 54, 8

local TYPES = {
	"HELLO", "COOKIE", "JOIN", "ACCEPT", "DECLARE", "DECLARED", "STATUS", "LEAVE", "LEFT",
	"KEEPALIVE", "ERROR", "TUNE", "END", "CLOSE", "PATHS", "PUSH", "RESULT", "ACK", "QUERY",
	"ANSWER", "WANT", "PROBE",
}
local DTYPES = {
	[0] = "f32", [1] = "f64", [2] = "f16", [3] = "u8", [4] = "i32", [5] = "i8", [6] = "i64",
	[9] = "bool", [10] = "bf16",
}
local COLLS = {
	[0] = "push_pull", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
	"barrier",
}
local ROUNDS = { [0] = "sum", "copy" }
local REDUCES = { [0] = "sum", "avg", "min", "max", "prod", "band", "bor", "bxor" }
local STATES = { [0] = "FORMING", "RUNNING", "FAILED", "PROBING" }
local POLICIES = { [0] = "bytescheduler", "p3", "fifo" }
local MODES = { [0] = "synchronous", "asynchronous", "stream" }
local ANSWERS = { [0] = "WAIT", "NEED", "GONE", "CRC", "BASE" }
local FAULTS = {
	[0] = "said", "declarations of a tensor", "declarations of a stream", "rounds", "steps",
	"collectives", "kinds", "closed", "closed with work open", "gone", "silent", "died", "stall",
}
local ERRORS = {
	[0] = "none", [-1] = "EINVAL", [-2] = "ENOMEM", [-3] = "EAGAIN", [-4] = "EBUSY",
	[-5] = "ETIMEDOUT", [-6] = "ECLOSED", [-7] = "EPEER", [-8] = "EMISMATCH",
	[-9] = "EREFUSED", [-10] = "EVERSION", [-11] = "EPROTO", [-12] = "ECORRUPT",
	[-13] = "ECONF", [-14] = "EIO", [-15] = "EPERM", [-16] = "ESTALL", [-17] = "ENOENT",
	[-18] = "ESERVER", [-19] = "EABORTED", [-20] = "EDEVICE", [-21] = "EEXPIRED",
}
-- Messages of the control stream (PROTOCOL.md 4.6).
local ORDERED = {
	DECLARE = true, DECLARED = true, STATUS = true, TUNE = true, END = true, CLOSE = true,
	PATHS = true,
}
local NO_SESSION = { HELLO = true, COOKIE = true, JOIN = true }

local proto = Proto("sumwire", "sumwire")
local F = {}

-- field declares sumwire.NAME once. @kind is a constructor of ProtoField.
local function field(kind, name, title, ...)
	local f = ProtoField[kind]("sumwire." .. name, title, ...)

	F[name] = f
	return f
end

field("uint16", "magic", "Magic", base.HEX)
field("uint8", "version", "Version")
field("uint8", "type", "Type", base.DEC, TYPES)
field("uint8", "flags", "Flags", base.HEX)
field("bool", "flags.no_crc", "Payload without CRC", 8, nil, 0x01)
field("bool", "flags.retx", "Sent before", 8, nil, 0x02)
field("bool", "flags.ack", "Acknowledge at once", 8, nil, 0x04)
field("bool", "flags.cipher", "Payload is encrypted", 8, nil, 0x08)
field("uint8", "flags.backlog", "Backlog, binary digits of quanta; RESULT: era", base.DEC, nil, 0xf0)
field("uint8", "class", "Class")
field("uint16", "payload_len", "Payload length")
field("uint32", "session", "Session of the receiver", base.HEX)
field("uint64", "psn", "Packet number")
field("uint32", "key", "Key", base.HEX)
field("uint32", "key.index", "Index", base.DEC, nil, 0xfff)
field("uint32", "key.generation", "Generation", base.DEC, nil, 0xfffff000)
field("uint32", "round", "Round")
field("uint32", "chunk", "Chunk")
field("uint32", "j", "Chunk number at this server")
field("uint32", "collective", "Collective")
field("uint16", "step", "Step")
field("uint16", "call_tag", "Tag of count and root", base.HEX)
field("uint16", "weight", "Weight (local ranks)")
field("uint16", "n", "Chunks")
field("uint8", "dtype", "Element type", base.DEC, DTYPES)
field("uint8", "op", "Operation", base.DEC, ROUNDS)
field("uint8", "coll", "Collective's kind", base.DEC, COLLS, 0xf0)
field("uint8", "reduce", "Collective's operation", base.DEC, REDUCES, 0x0f)
field("uint16", "aux", "Root, or updates")
field("uint16", "root", "Root's member")
field("uint16", "base", "Base, low half")
field("uint32", "left", "Closed session", base.HEX)
field("uint32", "first_failed", "First round that fails")
field("uint32", "returned", "Returned quanta")
field("uint16", "number", "Message")
field("uint16", "taken", "Last message taken")
field("uint32", "consumed", "Consumed quanta")
field("uint32", "grant", "Granted quanta")
field("uint32", "payload_crc", "Payload CRC", base.HEX)
field("uint32", "head_crc", "Header CRC xor seed", base.HEX)
field("uint64", "tag", "Tag", base.HEX)
field("bytes", "payload", "Payload")
-- Fields of control payloads; several types share some.
field("uint64", "nonce", "Nonce", base.HEX)
field("uint64", "cookie", "Cookie", base.HEX)
field("uint64", "key_id", "Key id", base.HEX)
field("uint16", "udp", "UDP port of the server")
field("bytes", "mac", "MAC")
field("bytes", "e", "Ephemeral public key")
field("bytes", "sealed", "Encrypted")
field("bytes", "reserved", "Reserved")
field("uint8", "core", "Core")
field("bool", "is_misrouted", "Another source port may help")
field("uint64", "epoch", "Epoch", base.HEX)
field("uint32", "own", "Session of the sender", base.HEX)
field("uint8", "version.lowest", "Lowest version")
field("uint8", "version.highest", "Highest version")
field("uint16", "member", "Member")
field("uint16", "members", "Members")
field("uint16", "local", "Local ranks")
field("uint16", "server", "Number of the receiver")
field("uint16", "servers", "Servers")
field("uint16", "payload_max", "Largest payload")
field("bool", "has_crc", "Payloads have a CRC")
field("stringz", "job", "Job")
field("stringz", "node", "Node")
field("uint16", "colocated", "Colocated servers")
field("uint8", "policy", "Policy", base.DEC, POLICIES)
field("uint8", "lcores", "Cores per server process")
field("uint64", "credit", "Credit in bytes")
field("uint64", "partition", "Partition in bytes")
field("uint8", "mode", "Mode", base.DEC, MODES)
field("uint8", "order", "Order of sums", base.DEC, { [0] = "arrival", "rank" })
field("uint16", "first_rank", "1 + first rank")
field("uint64", "joined", "Members that have joined", base.HEX)
field("uint8", "state", "State", base.DEC, STATES)
field("uint16", "ranks", "Ranks")
field("uint16", "rank", "First rank of the receiver")
field("uint16", "job_payload", "Payload of the job")
field("uint32", "tuning", "Number of the tuning")
field("uint16", "count", "Items")
field("uint64", "elements", "Elements")
field("uint64", "group_members", "Members of the group", base.HEX)
field("uint32", "first", "First chunk on the line")
field("uint32", "group", "Group", base.HEX)
field("uint32", "priority", "Priority")
field("uint8", "window_log2", "log2 of the window")
field("uint16", "name_len", "Length of the name")
field("string", "name", "Name")
field("bool", "is_refused", "The last item is refused")
field("int16", "error", "Error", base.DEC, ERRORS)
field("uint8", "fault", "Kind of fault", base.DEC, FAULTS)
field("stringz", "text", "Text")
field("bytes", "call", "Call of a rank")
field("uint64", "largest", "Largest packet number")
field("bytes", "received", "Received before it, a bit each")
field("uint16", "delay", "Microseconds since largest arrived")
field("uint16", "gap", "Longest gap in polling, microseconds")
field("uint16", "marked", "Frames with an ECN mark")
field("uint64", "missing", "Missing members", base.HEX)
field("uint8", "answer", "Answer", base.DEC, ANSWERS)

local fields = {}
for _, f in pairs(F) do fields[#fields + 1] = f end
proto.fields = fields

local X = {
	short = ProtoExpert.new("sumwire.short", "The frame is shorter than its type asks",
		expert.group.MALFORMED, expert.severity.ERROR),
	length = ProtoExpert.new("sumwire.length", "payload_len is not the UDP length - 62",
		expert.group.MALFORMED, expert.severity.ERROR),
	crc = ProtoExpert.new("sumwire.crc", "Wrong CRC", expert.group.CHECKSUM,
		expert.severity.ERROR),
	retx = ProtoExpert.new("sumwire.retransmission", "Sent before", expert.group.SEQUENCE,
		expert.severity.NOTE),
	fault = ProtoExpert.new("sumwire.ends", "An end with an error", expert.group.RESPONSE_CODE,
		expert.severity.WARN),
}
proto.experts = { X.short, X.length, X.crc, X.retx, X.fault }

-- CRC32C, a byte at a time (RFC 3720, appendix B.4).
local crc_table = {}
for i = 0, 255 do
	local c = i
	for _ = 1, 8 do
		c = bit.band(c, 1) == 1 and bit.bxor(bit.rshift(c, 1), 0x82f63b78) or bit.rshift(c, 1)
	end
	crc_table[i] = c
end

local function crc32c(range)
	local bytes, c = range:bytes(), 0xffffffff

	for i = 0, bytes:len() - 1 do
		c = bit.bxor(crc_table[bit.band(bit.bxor(c, bytes:get_index(i)), 255)],
			bit.rshift(c, 8))
	end
	return bit.bxor(c, 0xffffffff) % 2 ^ 32
end

-- A layout is a list of {offset, size, field}; it is what PROTOCOL.md 2 shows.
local function add_all(tree, at, layout)
	for _, row in ipairs(layout) do
		tree:add_le(F[row[3]], at(row[1], row[2]))
	end
end

local FAULT = {
	{ 0, 8, "nonce" }, { 8, 2, "error" }, { 10, 1, "fault" }, { 12, 4, "key" },
	{ 16, 24, "call" }, { 40, 24, "call" }, { 64, 160, "text" }, { 224, 40, "node" },
}

local LAYOUTS = {
	HELLO = { { 0, 8, "nonce" }, { 8, 8, "key_id" }, { 16, 16, "mac" },
		{ 32, 4, "session" }, { 36, 2, "udp" } },
	COOKIE = { { 0, 8, "nonce" }, { 8, 8, "cookie" }, { 16, 1, "core" },
		{ 17, 1, "is_misrouted" } },
	JOIN = { { 0, 8, "nonce" }, { 8, 8, "cookie" }, { 16, 8, "key_id" }, { 24, 8, "epoch" },
		{ 32, 4, "own" }, { 36, 1, "version.lowest" }, { 37, 1, "version.highest" },
		{ 38, 2, "member" }, { 40, 2, "members" }, { 42, 2, "local" }, { 44, 2, "server" },
		{ 46, 2, "servers" }, { 48, 2, "payload_max" }, { 50, 1, "has_crc" },
		{ 52, 128, "job" }, { 180, 128, "node" }, { 308, 2, "colocated" },
		{ 310, 1, "policy" }, { 311, 1, "lcores" }, { 312, 8, "credit" }, { 320, 1, "mode" },
		{ 321, 1, "order" }, { 322, 2, "first_rank" } },
	ACCEPT = { { 0, 8, "nonce" }, { 8, 4, "own" }, { 12, 1, "version" },
		{ 14, 2, "payload_max" } },
	STATUS = { { 0, 8, "joined" }, { 8, 1, "state" }, { 9, 1, "policy" }, { 10, 2, "member" },
		{ 12, 2, "ranks" }, { 14, 2, "rank" }, { 16, 2, "job_payload" }, { 20, 4, "tuning" },
		{ 24, 8, "partition" }, { 32, 8, "credit" }, { 40, 8, "epoch" } },
	TUNE = { { 0, 1, "policy" }, { 8, 8, "partition" }, { 16, 8, "credit" } },
	PATHS = { { 0, 2, "job_payload" } },
	LEAVE = FAULT, ERROR = FAULT, END = FAULT, CLOSE = FAULT,
	KEEPALIVE = {}, LEFT = {}, PROBE = {},
}

-- The layouts of a keyed job's JOIN and ACCEPT (PROTOCOL.md 14.3).
local SEALED = {
	JOIN = { { 0, 8, "nonce" }, { 8, 8, "cookie" }, { 16, 8, "key_id" }, { 24, 32, "e" },
		{ 56, 360, "sealed" } },
	ACCEPT = { { 0, 8, "nonce" }, { 8, 32, "e" }, { 40, 56, "sealed" } },
}
-- Bytes of COOKIE and ERROR behind which a keyed one has its MAC.
local MAC_AT = { COOKIE = 24, ERROR = 264 }

-- Types whose payload is a list of entries of one layout.
local ENTRIES = {
	ACK = { 48, { { 0, 8, "largest" }, { 8, 32, "received" }, { 40, 1, "class" },
		{ 42, 2, "delay" }, { 44, 2, "gap" }, { 46, 2, "marked" } } },
	QUERY = { 12, { { 0, 4, "key" }, { 4, 4, "round" }, { 8, 4, "chunk" } } },
	ANSWER = { 24, { { 0, 8, "missing" }, { 8, 4, "key" }, { 12, 4, "round" },
		{ 16, 4, "chunk" }, { 20, 1, "answer" } } },
}

local function add_entries(tree, body, name)
	local size, layout = ENTRIES[name][1], ENTRIES[name][2]

	for i = 0, math.floor(body:len() / size) - 1 do
		local entry = tree:add(body(i * size, size), name .. " entry " .. i)
		add_all(entry, body(i * size, size):tvb(), layout)
	end
	return body:len() % size == 0
end

local function add_declare(tree, body)
	local at, n = 8, body(0, 2):le_uint()

	tree:add_le(F.count, body(0, 2))
	tree:add_le(F.job_payload, body(2, 2))
	for i = 1, n do
		if body:len() < at + 24 then return false end
		local len = body(at + 22, 2):le_uint()
		if body:len() < at + 24 + len then return false end
		local is_stream = body(at + 21, 1):uint() == 2
		local item = tree:add(body(at, 24 + len), "Item " .. i)
		add_all(item, body(at, 24):tvb(), {
			{ 0, 8, is_stream and "group_members" or "elements" }, { 8, 4, "key" },
			{ 12, 4, is_stream and "group" or "first" }, { 16, 4, "priority" },
			{ 20, 1, is_stream and "window_log2" or "dtype" }, { 21, 1, "mode" },
			{ 22, 2, "name_len" },
		})
		item:add(F.name, body(at + 24, len))
		at = at + 24 + len
	end
	return true
end

local function add_declared(tree, body)
	local n, refused = body(0, 2):le_uint(), body(2, 1):uint() == 1

	tree:add_le(F.count, body(0, 2))
	tree:add(F.is_refused, body(2, 1))
	if body:len() < 8 + 8 * n + (refused and 264 or 0) then return false end
	for i = 0, n - 1 do
		tree:add_le(F.key, body(8 + 4 * i, 4))
		tree:add_le(F.first, body(8 + 4 * n + 4 * i, 4))
	end
	if refused then
		add_all(tree:add(body(8 + 8 * n, 264), "Fault"), body(8 + 8 * n, 264):tvb(), FAULT)
	end
	return true
end

-- Least payload by type, where it is not 0; a shorter one is malformed.
local LEAST = {
	HELLO = 64, COOKIE = 24, JOIN = 368, ACCEPT = 16, DECLARE = 8, DECLARED = 8, STATUS = 440,
	LEAVE = 264, ERROR = 264, TUNE = 24, END = 264, CLOSE = 264, PATHS = 8, RESULT = 1,
	ACK = 0, QUERY = 12, ANSWER = 24, PROBE = 64,
}

local function add_body(tree, body, name, is_keyed)
	if is_keyed and SEALED[name] then
		if body:len() < 416 then return false end
		add_all(tree, body:tvb(), SEALED[name])
		return true
	elseif LAYOUTS[name] then
		add_all(tree, body:tvb(), LAYOUTS[name])
		if MAC_AT[name] and body:len() == MAC_AT[name] + 16 then
			tree:add(F.mac, body(MAC_AT[name], 16))
		end
		if name == "STATUS" then
			add_all(tree:add(body(176, 264), "Fault"), body(176, 264):tvb(), FAULT)
		end
		return true
	elseif ENTRIES[name] then
		return add_entries(tree, body, name)
	elseif name == "DECLARE" then
		return add_declare(tree, body)
	elseif name == "DECLARED" then
		return add_declared(tree, body)
	end
	tree:add(F.payload, body)
	return true
end

-- The fields of bytes 16 to 35 have three meanings: of control frames, tensors and streams.
local function add_call(tree, tvb, name, is_control)
	local is_stream = not is_control and tvb(33, 1):uint() >= 16

	if is_control then
		if name == "LEFT" then tree:add_le(F.left, tvb(16, 4)) end
		if name == "END" then
			tree:add_le(F.key, tvb(16, 4))
			tree:add_le(F.first_failed, tvb(20, 4))
		end
		tree:add_le(F.returned, tvb(24, 4))
		if ORDERED[name] then tree:add_le(F.number, tvb(28, 2)) end
		tree:add_le(F.taken, tvb(34, 2))
		return
	end
	local key = tree:add_le(F.key, tvb(16, 4))
	key:add_le(F["key.index"], tvb(16, 4))
	key:add_le(F["key.generation"], tvb(16, 4))
	if is_stream then
		add_all(tree, tvb, {
			{ 20, 4, "j" }, { 24, 4, "collective" }, { 28, 2, "call_tag" },
			{ 30, 2, name == "WANT" and "n" or "weight" }, { 32, 1, "dtype" },
			{ 33, 1, "coll" }, { 33, 1, "reduce" },
			{ 34, 2, name == "RESULT" and "base" or "root" },
		})
	else
		add_all(tree, tvb, {
			{ 20, 4, "round" }, { 24, 4, "chunk" }, { 28, 2, "step" }, { 30, 2, "weight" },
			{ 32, 1, "dtype" }, { 33, 1, "op" }, { 34, 2, "aux" },
		})
	end
end

local function is_encrypted(tvb)
	return bit.band(tvb(4, 1):uint(), 8) ~= 0
end

-- summary is the line of the packet list.
local function summary(tvb, name, len)
	local text = name

	if name == "PUSH" or name == "RESULT" or name == "WANT" then
		local key, is_stream = tvb(16, 4):le_uint(), tvb(33, 1):uint() >= 16
		text = string.format(
			is_stream and "%s key %d.%d j %d collective %d" or "%s key %d.%d round %d chunk %d",
			name, key % 4096, math.floor(key / 4096), tvb(20, 4):le_uint(),
			tvb(24, 4):le_uint())
	elseif is_encrypted(tvb) then
		text = name .. ", encrypted"
	elseif name == "STATUS" and len >= 440 then
		text = "STATUS " .. (STATES[tvb(HEAD + 8, 1):uint()] or "?")
	elseif LAYOUTS[name] == FAULT and len >= 264 then
		local said = tvb(HEAD + 64, 160):stringz()
		text = string.format("%s %s%s", name,
			ERRORS[tvb(HEAD + 8, 2):le_int()] or "?", said ~= "" and ": " .. said or "")
	elseif name == "ACK" or name == "QUERY" or name == "ANSWER" then
		text = string.format("%s of %d", name, math.floor(len / ENTRIES[name][1]))
	end
	return string.format("%s, psn %s:%d, %d B%s", text, tvb(5, 1):uint(),
		tvb(12, 4):le_uint(), len, bit.band(tvb(4, 1):uint(), 2) ~= 0 and ", again" or "")
end

-- Paths on which a JOIN named a key, by both ends.
local keyed = {}

-- learn notes a JOIN, and returns whether the frame is of a keyed session.
local function learn(tvb, name, pinfo)
	local a = tostring(pinfo.src) .. ":" .. pinfo.src_port
	local b = tostring(pinfo.dst) .. ":" .. pinfo.dst_port
	local path = a < b and a .. " " .. b or b .. " " .. a

	if name == "JOIN" and tvb:len() >= HEAD + 24 then
		keyed[path] = tvb(HEAD + 16, 8):le_uint64() ~= UInt64.new(0)
	end
	return keyed[path] or false
end

function proto.init()
	keyed = {}
end

-- Frames that have CRCs even in a keyed job.
local HAS_CRC = { HELLO = true, COOKIE = true, JOIN = true, ACCEPT = true }

local function add_checks(tree, tvb, name, is_control, len, is_keyed)
	local is_refusal = name == "ERROR" and len == MAC_AT.ERROR + 16

	if is_keyed and not HAS_CRC[name] and not is_refusal then
		tree:add_le(F.tag, tvb(46, 8))
		return
	end
	local sum = tree:add_le(F.payload_crc, tvb(46, 4))
	local head = tree:add_le(F.head_crc, tvb(50, 4))

	if is_control and crc32c(tvb(HEAD, len)) ~= tvb(46, 4):le_uint() then
		sum:add_proto_expert_info(X.crc)
	end
	if NO_SESSION[name] and crc32c(tvb(0, 50)) ~= tvb(50, 4):le_uint() then
		head:add_proto_expert_info(X.crc)
	end
end

local function add_payload(tree, tvb, name, is_control, len, is_keyed)
	local body = tvb(HEAD, len)
	local part = tree:add(body, name .. ", " .. len .. " bytes")

	add_checks(tree, tvb, name, is_control, len, is_keyed)
	if is_encrypted(tvb) then
		part:add(F.payload, body)
	elseif len < (LEAST[name] or 0) or not add_body(part, body, name, is_keyed) then
		part:add_proto_expert_info(X.short)
	elseif LAYOUTS[name] == FAULT and body(8, 2):le_int() ~= 0 then
		part:add_proto_expert_info(X.fault)
	end
end

-- dissect_frame shows the one frame of @tvb, and returns its line of the packet list. The
-- capture left out its last @cut bytes.
local function dissect_frame(tvb, cut, pinfo, root)
	local name, class = TYPES[tvb(3, 1):uint()], tvb(5, 1):uint()
	local len = tvb:len() - HEAD
	local is_control = class == CONTROL
	local tree = root:add(proto, tvb(), "sumwire " .. name)

	add_all(tree, tvb, { { 0, 2, "magic" }, { 2, 1, "version" }, { 3, 1, "type" } })
	local flags = tree:add_le(F.flags, tvb(4, 1))
	add_all(flags, tvb, { { 4, 1, "flags.no_crc" }, { 4, 1, "flags.retx" },
		{ 4, 1, "flags.ack" }, { 4, 1, "flags.cipher" }, { 4, 1, "flags.backlog" } })
	if bit.band(tvb(4, 1):uint(), 2) ~= 0 then flags:add_proto_expert_info(X.retx) end
	tree:add_le(F.class, tvb(5, 1))
	local stated = tree:add_le(F.payload_len, tvb(6, 2))
	if tvb(6, 2):le_uint() ~= len + cut then stated:add_proto_expert_info(X.length) end
	tree:add_le(F.session, tvb(8, 4))
	tree:add(F.psn, tvb(12, 4),
		UInt64.new(tvb(12, 4):le_uint(), tvb(44, 2):le_uint()))
	add_call(tree, tvb, name, is_control)
	add_all(tree, tvb, { { 36, 4, "consumed" }, { 40, 4, "grant" } })
	local is_keyed = learn(tvb, name, pinfo)
	if cut > 0 then
		if len > 0 then tree:add(F.payload, tvb(HEAD, len)) end
	elseif len > 0 then
		add_payload(tree, tvb, name, is_control, len, is_keyed)
	end
	return summary(tvb, name, len + cut)
end

-- is_ours looks at magic, type and class.
local function is_ours(tvb, at)
	return tvb:len() >= at + HEAD and tvb(at, 2):le_uint() == 0x4d53 and
		TYPES[tvb(at + 3, 1):uint()] ~= nil and tvb(at + 5, 1):uint() <= CONTROL
end

-- dissect shows all frames of a datagram: the kernel joins frames of a burst, and an
-- interface that cuts them itself (UDP_SEGMENT) shows the whole train.
local function dissect(tvb, pinfo, root)
	local at, n, line = 0, 0, nil

	while at < tvb:len() do
		local last = at + HEAD + tvb(at + 6, 2):le_uint()
		local cut = 0
		if not is_ours(tvb, last) then
			last, cut = tvb:len(), tvb:reported_len() - tvb:len()
		end
		local text = dissect_frame(tvb(at, last - at):tvb(), cut, pinfo, root)
		line, n, at = line or text, n + 1, last
	end
	pinfo.cols.protocol = "sumwire"
	pinfo.cols.info = n > 1 and string.format("%s, and %d more", line, n - 1) or line
	return at
end

function proto.dissector(tvb, pinfo, root)
	return dissect(tvb, pinfo, root)
end

proto:register_heuristic("udp", function(tvb, pinfo, root)
	return is_ours(tvb, 0) and dissect(tvb, pinfo, root) > 0
end)
