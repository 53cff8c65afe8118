#compdef probing
# zsh completion for probing.  The program knows what may follow: see `probing help completion`.
_probing() {
    local -a found joined
    local more ret=1
    found=("${(@f)$("${${(Q)words[1]}/#\~\//$HOME/}" completion zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    more=" $found[1] "
    shift found
    [[ $more == *' join '* ]] && joined=(-S '')
    (( $#found )) && _describe -t words probing found "${joined[@]}" && ret=0
    [[ $PREFIX == -*=* ]] && compset -P '*='
    [[ $more == *' programs '* ]] && _command_names -e && ret=0
    [[ $more == *' folders '* ]] && _files -/ && ret=0
    [[ $more == *(' files '|' programs ')* ]] && _files && ret=0
    return ret
}
# A line for each word.  Grouped, processes with the same command line make a table that zsh shows only when asked again.
zstyle ':completion:*:*:probing:*:words' list-grouped false
if [ "$funcstack[1]" = _probing ]; then _probing "$@"; else compdef _probing probing; fi
