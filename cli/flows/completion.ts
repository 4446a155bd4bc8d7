import { flagsFor, matchCommand, spellingsOf } from '../arguments/parse.ts'
import { allCommands } from '../arguments/commands.ts'
import type { Command } from '../arguments/command.ts'
import type { PositionalSpec } from '../../shared/api/command.ts'
import type { CommandContext, Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import type { Candidate } from './complete-references.ts'

// Shell completion: three small scripts, each of which asks `svc complete-words` for the words that may follow.

const bash = `# svc completion for bash
# The shell also breaks words at @, = and :, and completes what stands behind these.
_svc() {
  local i word line whole before cur=\${COMP_WORDS[COMP_CWORD]} rest=\${COMP_LINE:0:COMP_POINT}
  local -a words=()
  for (( i = 0; i <= COMP_CWORD; i++ )); do
    word=\${COMP_WORDS[i]}
    if (( i > 0 )) && [[ $rest != [[:space:]]* && ( -n $word || -n \${words[1]} ) && -n $COMP_LINE ]]; then
      words[\${#words[@]}-1]+=$word
    else
      rest=\${rest#"\${rest%%[![:space:]]*}"}
      words+=("$word")
    fi
    rest=\${rest#"$word"}
  done
  whole=\${words[\${#words[@]}-1]}
  before=\${whole%"$cur"}
  case $cur in '@' | '=' | ':') before=$whole ;; esac
  COMPREPLY=()
  while IFS= read -r line; do
    word=\${line%%$'\\t'*}
    word=\${word#"$before"}
    [[ -n $word ]] && COMPREPLY+=("$(printf %q "$word")")
  done < <(svc complete-words -- "\${words[@]:1}" 2>/dev/null)
  if (( \${#COMPREPLY[@]} == 0 )); then
    type compopt >/dev/null 2>&1 && compopt -o filenames
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
  fi
}
complete -F _svc svc
`

const zsh = `#compdef svc
# svc completion for zsh
_svc() {
  local -a candidates
  local line
  for line in "\${(@f)$(svc complete-words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && candidates+=("\${\${\${line%%$'\\t'*}//\\\\/\\\\\\\\}//:/\\\\:}:\${line#*$'\\t'}")
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

export const completion: Flow = async ({ out, values, positionals }) => {
  const shell = positionals['shell']?.[0] ?? values.local['shell']
  if (typeof shell !== 'string') throw usageError(`Name a shell: ${Object.keys(scripts).join(', ')}.`)
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
  if (script === undefined)
    throw usageError(`There is a script for ${Object.keys(scripts).join(', ')}, not for \`${shell}\`.`)
  out.text(script)
}

export const completeWords: Flow = async (context) => {
  const words = context.positionals['words'] ?? []
  const commands = await allCommands()
  const found = [...candidatesFor(commands, words), ...(await referencesFor(context, commands, words))]
  if (found.length > 0) context.out.text(found.map(({ word, description }) => `${word}\t${description}\n`).join(''))
}

/** The words that the server knows for what is being typed. */
async function referencesFor(context: CommandContext, commands: readonly Command[], words: readonly string[]) {
  const typed = words.at(-1) ?? ''
  const match = matchCommand(commands, words.slice(0, -1))
  const place = match === null ? null : referencePlace(match.command, match.rest, typed)
  if (match === null || place === null) return []
  const { referenceCandidates } = await import('./complete-references.ts')
  const named = match.rest.indexOf('--workspace')
  const workspaceId = named === -1 ? null : (match.rest[named + 1] ?? null)
  const found = await referenceCandidates(context, { kind: place.kind, workspaceId })
  return found
    .map(({ word, description }) => ({ word: place.before + word, description }))
    .filter(({ word }) => word.startsWith(typed))
}

/** What the word that is being typed names, and what stands before the name in it. */
function referencePlace(command: Command, rest: readonly string[], typed: string) {
  const flags = flagsFor(command)
  const flagAt = (word: string | undefined) =>
    flags.find((flag) => flag.kind !== 'boolean' && word === `--${flag.name}`)
  const open = flagAt(rest.at(-1))
  if (open !== undefined) return open.refers === undefined ? null : { kind: open.refers, before: '' }
  if (typed.startsWith('-')) {
    const [name] = typed.split('=', 1)
    const kind = typed.includes('=') ? flagAt(name)?.refers : undefined
    return kind === undefined ? null : { kind, before: `${name}=` }
  }
  const kind = positionalAt(command, rest)?.refers
  return kind === undefined ? null : { kind, before: '' }
}

/** The positional that comes next. */
function positionalAt(command: Command, rest: readonly string[]): PositionalSpec | undefined {
  const withValue = new Set(
    flagsFor(command)
      .filter(({ kind }) => kind !== 'boolean')
      .flatMap(spellingsOf),
  )
  const place = rest.filter((word, at) => !word.startsWith('-') && !withValue.has(rest[at - 1] ?? '')).length
  const positional = command.positionals[Math.min(place, command.positionals.length - 1)]
  return place >= command.positionals.length && positional?.variadic !== true ? undefined : positional
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
  const positional = positionalAt(command, rest)
  if (positional === undefined) return []
  if (command.name === 'completion') return Object.keys(scripts).map((word) => ({ word, description: 'shell' }))
  if (positional.target === 'params.runId') return [{ word: 'current', description: 'the run this shell is in' }]
  if (positional.target === 'params.agentId') return [{ word: 'me', description: 'the calling agent' }]
  return positional.nullWord === undefined ? [] : [{ word: positional.nullWord, description: 'clears it' }]
}
