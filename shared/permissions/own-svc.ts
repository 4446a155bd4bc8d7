import { unknown } from './shell/command-builder.ts'
import { lex } from './shell/lexer.ts'
import { shellParts } from './shell/parts.ts'

/**
 * The commands of `svc` that an agent needs for its work: to read what it is told to do, to say what it did, to ask. The server
 * decides by the run's token what it may. Commands that command this machine or its login (`device`, `folder`, `login`,
 * `api`), or start work elsewhere, are not among them. null: all commands of the group.
 */
const groups: ReadonlyMap<string, readonly string[] | null> = new Map([
  ['task', null],
  ['comment', null],
  ['question', null],
  ['conversation', null],
  ['learning', ['add', 'get', 'list']],
  ['run', ['get', 'list', 'read', 'events', 'result', 'output']],
  ['agent', ['get', 'list', 'identity']],
  ['project', ['get', 'list']],
  ['mcp', ['get', 'list']],
  ['plugin', ['get', 'list']],
  ['skill', ['get', 'list', 'agent-overrides']],
  ['connection', ['get', 'list', 'services']],
  ['member', ['list']],
  ['whoami', null],
  ['version', null],
  ['help', null],
])

/** Flags by which svc reads a file: by them a run could send what it may not read. */
const readsFile = /^-.*(?:file|attach)/is
/**
 * Tells whether the command takes a word without a flag for a file. It may only have standard input, and flags whose value is in the same
 * word.
 */
const takesFile = (group: string, name: string): boolean => group === 'task' && name === 'batch'
const namesNoFile = (word: string): boolean => word === '-' || /^--[a-z]/.test(word)

/**
 * Says whether a shell command is one plain call of the run's own `svc`, which is first on the run's PATH: nothing before or
 * after it, nothing that the shell makes up, and no file.
 */
export function isOwnSvc(command: string, svcProgram: string | null): boolean {
  if (svcProgram === null) return false
  const parts = shellParts(command)
  if (parts?.length !== 1 || parts[0] !== command.trim()) return false
  const [words, ...others] = lex(command).commands
  if (words === undefined || others.length > 0 || words.some(({ shape }) => shape.includes(unknown))) return false
  const [program, group = '', name = '', ...rest] = words.map(({ text }) => text)
  if (program !== 'svc' && program !== svcProgram) return false
  const names = groups.get(group)
  if (names === undefined || (names !== null && !names.includes(name))) return false
  if (takesFile(group, name) && !rest.every(namesNoFile)) return false
  return ![name, ...rest].some((word) => readsFile.test(word) || /^-[^-]/.test(word))
}
