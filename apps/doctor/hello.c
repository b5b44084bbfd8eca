/* hello.c - check that a sumwire server answers.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "apps/doctor/hello.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/wire/wire.h"

int sw_hello_send(int fd, uint64_t nonce)
{
	const struct sw_hello hello = {.nonce = nonce};
	const struct sw_path nowhere = {.udp = 0};
	uint8_t datagram[SW_HEAD_BYTES + sizeof(hello)];
	struct sw_tx_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.header.type = SW_HELLO;
	frame.header.class = SW_CLASS_CTL;
	frame.header.payload_len = sizeof(hello);
	frame.header.psn = 1;
	sw_frame_fill(&frame, nowhere, &hello, false);
	memcpy(datagram, frame.head, SW_HEAD_BYTES);
	memcpy(datagram + SW_HEAD_BYTES, &hello, sizeof(hello));
	return send(fd, datagram, sizeof(datagram), 0) < 0 ? errno : 0;
}

bool sw_hello_is_answer(const void *datagram, uint32_t n, uint64_t nonce)
{
	struct sw_rx_frame frame = {.data = datagram, .len = n};
	struct sw_cookie cookie;
	struct sw_header head;
	struct sw_stats st;

	if (n < SW_HEAD_BYTES)
		return false;
	frame.payload = frame.data + SW_HEAD_BYTES;
	memset(&st, 0, sizeof(st));
	memset(&head, 0, sizeof(head));
	sw_frames_open(&frame, 1, &head, false, &st);
	if (head.type == SW_ERROR)
		return true;
	if (head.type != SW_COOKIE || n < SW_HEAD_BYTES + sizeof(cookie))
		return false;
	memcpy(&cookie, frame.payload, sizeof(cookie));
	return cookie.nonce == nonce;
}
