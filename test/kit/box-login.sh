# What a person types on one terminal, a line each time: LINE is typed where the line before left off, which STATE keeps (folder, variables,
# aliases). bash -l test/kit/box-login.sh LINE STATE
# shellcheck shell=bash disable=SC1090
shopt -s expand_aliases
[ ! -e "$2" ] || . "$2"
eval "$1"
status=$?
{
  export -p
  alias -p
  printf 'cd %q\n' "$PWD"
} >"$2"
exit "$status"
