import { flagsFor, matchCommand } from '../arguments/parse.ts'
import { allCommands } from '../arguments/commands.ts'
import type { Command } from '../arguments/command.ts'
import type { Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'

// Shell completion: three small scripts, each of which asks `svc complete-words` for the words that may follow.

const bash = `# svc completion for bash
_svc() {
  local IFS=$'\\n'
  COMPREPLY=($(svc complete-words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
  if [[ \${#COMPREPLY[@]} -eq 0 ]]; then
    COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
  fi
}
complete -o filenames -F _svc svc
`

const zsh = `#compdef svc
# svc completion for zsh
_svc() {
  local -a candidates
  local line
  for line in "\${(@f)$(svc complete-words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( \${#candidates} )); then
    _describe svc candidates
  else
    _files
  fi
}
if [[ $funcstack[1] == _svc ]]; then _svc "$@"; else compdef _svc svc; fi
`

const fish = `# svc completion for fish
function __svc_complete
  set -l words (commandline -opc) (commandline -ct)
  svc complete-words -- $words[2..-1] 2>/dev/null
end
complete -c svc -f -n 'test (count (__svc_complete)) -gt 0' -a '(__svc_complete)'
`

const scripts: Readonly<Record<string, string>> = { bash, zsh, fish }

export const completion: Flow = async ({ out, values }) => {
  const shell = String(values.local['shell'])
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
  if (script === undefined)
    throw usageError(`There is a script for ${Object.keys(scripts).join(', ')}, not for \`${shell}\`.`)
  out.text(script)
}

export const completeWords: Flow = async ({ out, positionals }) => {
  const candidates = candidatesFor(await allCommands(), positionals['words'] ?? [])
  for (const { word, description } of candidates) out.text(`${word}\t${description}`)
}

export interface Candidate {
  word: string
  description: string
}

/** The candidates for the last of `words`. */
export function candidatesFor(commands: readonly Command[], words: readonly string[]): Candidate[] {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const match = matchCommand(commands, before)
  const all = match === null ? nextWords(commands, before) : followers(match.command, match.rest, typed)
  return all.filter(({ word }) => word.startsWith(typed))
}

function nextWords(commands: readonly Command[], before: readonly string[]): Candidate[] {
  const prefix = before.map((word) => `${word} `).join('')
  const found = new Map<string, Candidate>()
  for (const command of commands) {
    if (command.hidden === true || !command.name.startsWith(prefix)) continue
    const [word, ...more] = command.name.slice(prefix.length).split(' ') as [string, ...string[]]
    const description = more.length === 0 ? command.summary : `svc ${prefix}${word} ...`
    if (!found.has(word) || more.length === 0) found.set(word, { word, description })
  }
  return [...found.values()]
}

function followers(command: Command, rest: readonly string[], typed: string): Candidate[] {
  const flags = flagsFor(command)
  const last = rest.at(-1)
  const open = flags.find((flag) => flag.kind !== 'boolean' && last === `--${flag.name}`)
  if (open !== undefined) return (open.choices ?? []).map((word) => ({ word, description: open.description }))
  const [name, value] = typed.split('=') as [string, string | undefined]
  const named = flags.find((flag) => `--${flag.name}` === name)
  if (value !== undefined && named !== undefined) {
    return (named.choices ?? []).map((choice) => ({ word: `${name}=${choice}`, description: named.description }))
  }
  const shown = flags.filter(
    (flag) => flag.hidden !== true && (flag.repeatable === true || !rest.includes(`--${flag.name}`)),
  )
  const asked = typed.startsWith('-') ? shown : []
  return [
    ...asked.map((flag) => ({ word: `--${flag.name}`, description: flag.description })),
    ...wordsFor(command, rest),
  ]
}

/** Words with a special meaning in the place of the next positional. */
function wordsFor(command: Command, rest: readonly string[]): Candidate[] {
  const place = rest.filter((word) => !word.startsWith('-')).length
  const positional = command.positionals[Math.min(place, command.positionals.length - 1)]
  if (positional === undefined || (place >= command.positionals.length && positional.variadic !== true)) return []
  if (command.name === 'completion') return Object.keys(scripts).map((word) => ({ word, description: 'shell' }))
  if (positional.target === 'params.runId') return [{ word: 'current', description: 'the run this shell is in' }]
  if (positional.target === 'params.agentId') return [{ word: 'me', description: 'the calling agent' }]
  return positional.nullWord === undefined ? [] : [{ word: positional.nullWord, description: 'clears it' }]
}
