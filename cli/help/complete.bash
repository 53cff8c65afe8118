# bash completion for probing.  The program knows what may follow: see `probing help completion`.
_probing() {
    local -a words=() found=()
    local raw=${COMP_WORDS[COMP_CWORD]} word='' before='' line='' more='' i
    # bash splits words at = and :, which belong to them.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((${#words[@]})) && [[ -n $word && ($word =~ ^[=:]+$ || ${COMP_WORDS[i-1]} =~ ^[=:]+$) ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    ((${#words[@]})) || return
    [[ $raw =~ ^[=:]+$ ]] && raw=
    before=${words[-1]%"$raw"} # what bash does not replace
    words=("${words[@]//[\\\"\']/}")
    mapfile -t found < <("${COMP_WORDS[0]/#\~\//$HOME/}" completion bash "${words[@]}" 2>/dev/null)
    more=" ${found[0]} "
    for line in "${found[@]:1}"; do
        line=${line#"$before"}
        case $raw in
        \"*) [[ $line == *[\"\$\`\\!]* ]] && continue ;;
        \'*) [[ $line == *\'* ]] && continue ;;
        *) printf -v line %q "$line" ;;
        esac
        COMPREPLY+=("$line")
    done
    [[ $more == *' join '* ]] && compopt -o nospace 2>/dev/null
    if [[ $more == *' programs '* && $raw != */* ]]; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$raw")
    elif [[ $more == *' folders '* ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$raw")
    elif [[ $more == *' files '* || $more == *' programs '* ]]; then
        if ((${#COMPREPLY[@]})); then
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$raw")
        else
            compopt -o default 2>/dev/null
        fi
    fi
}
complete -F _probing probing
