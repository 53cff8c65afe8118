# fish completion for probing.  The program knows what may follow: see `probing help completion`.
function __probing_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -e words[1]
    set -l found ($program completion fish $words "$last" 2>/dev/null)
    set -l more (string split ' ' -- $found[1])
    set -e found[1]
    for line in $found
        echo $line
    end
    set -l before (string match -r -- '^--[^=]*=' "$last")
    set -l rest (string sub -s (math (string length -- "$before") + 1) -- "$last")
    if contains programs $more
        __fish_complete_command
    else if contains folders $more
        string replace -r '^' -- "$before" (__fish_complete_directories "$rest")
    else if contains files $more
        string replace -r '^' -- "$before" (__fish_complete_path "$rest")
    end
end
complete -c probing -f -a '(__probing_complete)'
