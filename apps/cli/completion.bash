# completion.bash - completion of sumwire and sumwire-lab in bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands name their own options (--complete), so this file names none.
_sumwire()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} words=

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words=$("$1" --complete 2>/dev/null)
	elif [[ $cur == -* ]]; then
		words=$("$1" "$command" --complete 2>/dev/null)
	elif [[ $prev == --explain ]]; then
		words=$("$1" stats --explain 2>/dev/null | sed -n 's/^\([^ ]*\) (.*/\1/p')
	elif [[ $command =~ ^(capture|metrics|stats|status|top|trace)$ || $prev == --agent ]]; then
		words=$("$1" ps 2>/dev/null | awk 'NR > 1 && $1 != "-" { print $1 }')
	fi
	[[ $words ]] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -F _sumwire sumwire sumwire-lab
