import { fileURLToPath } from 'node:url'
import { mainFields } from '../runs/call-fields.ts'
import { isSystemShell } from './shell/system-shell.ts'
import { mayLeadUp } from './glob-up.ts'

/**
 * The commands, paths, addresses and texts in the input of a tool call: all that it reaches for. Every known field counts, also
 * several at once and those deep inside, since nobody knows which of them a tool goes by. Pure; never throws.
 */
export interface CallInputs {
  commands: readonly string[]
  paths: readonly PathInput[]
  urls: readonly string[]
  texts: readonly string[]
  /** Texts of a tool that svc does not know, in fields that say nothing: only a list that forbids looks at them. */
  others: readonly string[]
  /** The reason for which not all of it was looked at; then no pattern can speak for the call. */
  doubt: string | null
}

/** A path as the tool was given it. */
export interface PathInput {
  text: string
  /** The part that follows `text` in a pattern of file names, from its first special character on; empty for a plain path. */
  rest: string
  /** The call names no path, so that the tool takes the folder it works in. */
  isDefault: boolean
}

export interface ToolCall {
  name: string
  input: unknown
}

/** The most values and paths of a call that are judged. A call with more is denied where a rule would have to be. */
const limits = { values: 20_000, paths: 500 } as const

type Kind = 'command' | 'commands' | 'path' | 'place' | 'url' | 'address' | 'text' | 'maybe-path'

/** The kind of a field by the last word of its name: `filePath`, `notebook_path` and `output-path` are paths. */
const kinds: ReadonlyMap<string, Kind> = new Map(
  Object.entries({
    command: 'command cmd commandline cmdline argv script program executable',
    commands: 'commands cmds scripts',
    path: 'path paths file files filename filenames filepath filepaths dir dirs directory directories folder folders cwd workdir pathname',
    place: 'source sources destination destinations src dest dst',
    'maybe-path': 'target root roots from to location',
    address: 'uri uris href',
    url: 'url urls',
    text: 'query pattern skill type',
  } satisfies Record<Kind, string>).flatMap(([kind, names]) => names.split(' ').map((name) => [name, kind as Kind])),
)
/** Names of fields that hold a program's arguments, beside the one that names it. */
const argumentNames = new Set(['args', 'arguments', 'argv', 'params', 'parameters'])
const textNames = new Set(['query', 'pattern', 'skill', 'subagent_type'])

/** Tools whose fields are known: a text of theirs that only looks like a path (what is written into a file) is none. */
const knownTools = new Set(
  'agent bash bashoutput edit glob grep killshell ls multiedit notebookedit notebookread read skill task todowrite toolsearch webfetch websearch write'.split(
    ' ',
  ),
)
/** Tools that work in the current folder when they are told no other. */
const searchingTools = new Set(['grep', 'glob', 'ls'])

export function inputsOf({ name, input }: ToolCall): CallInputs {
  const tool = name.toLowerCase()
  const found = new Found(knownTools.has(tool))
  found.walk(input)
  const { commands, urls, texts, others, doubt } = found
  let paths = found.paths.map((text): PathInput => ({ text, rest: '', isDefault: false }))
  if (tool === 'glob') paths = globPaths(found.paths, texts)
  if (paths.length === 0 && searchingTools.has(tool)) paths = [{ text: '.', rest: '', isDefault: true }]
  const unjudged = mayLeadUp(paths.map(({ rest }) => rest))
  return { commands, paths, urls, texts, others, doubt: doubt ?? (unjudged ? 'its pattern leaves its folder' : null) }
}

/** A pattern of file names below a folder: its plain beginning can be looked up, the rest cannot. */
function globPaths(folders: readonly string[], patterns: readonly string[]): PathInput[] {
  return (patterns.length === 0 ? [''] : patterns).flatMap((pattern) => {
    const special = pattern.search(/[*?[{(!+@\\]/)
    const plain = special < 0 ? pattern : pattern.slice(0, pattern.lastIndexOf('/', special) + 1)
    const rest = pattern.slice(plain.length)
    const isWhole = /^\s*[/~]/.test(plain)
    const texts = isWhole || folders.length === 0 ? [plain === '' ? '.' : plain] : []
    const below = isWhole ? folders : folders.map((folder) => (plain === '' ? folder : `${folder}/${plain}`))
    return [...texts, ...below].map((text) => ({ text, rest, isDefault: folders.length === 0 && plain === '' }))
  })
}

class Found {
  readonly commands: string[] = []
  readonly paths: string[] = []
  readonly urls: string[] = []
  readonly texts: string[] = []
  readonly others: string[] = []
  doubt: string | null = null
  readonly #isKnownTool: boolean
  #values = 0

  constructor(isKnownTool: boolean) {
    this.#isKnownTool = isKnownTool
  }

  /** Walks in a loop, so that no input is too deep. */
  walk(input: unknown): void {
    const left: { value: unknown; kind: Kind | null }[] = [{ value: input, kind: null }]
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      this.#values += Array.isArray(next.value) ? next.value.length : 1
      if (this.#values > limits.values) {
        this.doubt = 'its input has too many parts'
        return
      }
      const { value, kind } = next
      if (typeof value === 'string') this.#take(value, kind)
      else if (typeof value === 'number' && kind === 'path') this.#takePath(String(value))
      else if (Array.isArray(value) && isCommand(kind)) left.push(...this.#takeWords(value, kind))
      else if (Array.isArray(value)) left.push(...value.toReversed().map((item: unknown) => ({ value: item, kind })))
      else if (typeof value === 'object' && value !== null) {
        const fields = withArguments(Object.entries(value), kind).toReversed()
        left.push(
          ...fields.map(({ name, item, isGiven }) => ({ value: item, kind: isGiven ? null : (kindOf(name) ?? kind) })),
        )
      }
    }
  }

  /** The words of one command, or several lines; returns what is left to look at. */
  #takeWords(words: readonly unknown[], kind: Kind | null): { value: unknown; kind: Kind | null }[] {
    const isNested = words.some((word) => typeof word === 'object' && word !== null)
    // A program's name has no blank in it.
    const isList = isNested || kind === 'commands' || (typeof words[0] === 'string' && /\S\s+\S/.test(words[0]))
    if (!isNested) (kind === 'command' ? this.commands : this.others).push(commandOf(words))
    return isList ? words.toReversed().map((value) => ({ value, kind: Array.isArray(value) ? 'command' : kind })) : []
  }

  #take(text: string, kind: Kind | null): void {
    if (kind === 'command' || kind === 'commands') this.commands.push(text)
    else if (kind === 'text') this.texts.push(text)
    else if (kind === 'path') this.#takePath(text)
    else if (/^\s*file:/i.test(text) && (kind !== null || !this.#isKnownTool)) this.#takePath(text)
    else if (kind === 'url' || (kind === 'address' && /^[a-z][a-z\d+.-]*:/i.test(text))) this.urls.push(text)
    else if ((kind === 'maybe-path' || kind === 'place') && /^[a-z][a-z\d+.-]*:\/\//i.test(text)) this.urls.push(text)
    else if (kind === 'address' || kind === 'place' || (kind === 'maybe-path' && /[/\\~]/.test(text)))
      this.#takePath(text)
    else if (this.#isKnownTool) return
    else if (looksLikePath(text)) this.#takePath(text)
    else if (/^\s*https?:/i.test(text) && !/\s/.test(text.trim())) this.urls.push(text)
    else this.others.push(text)
  }

  #takePath(text: string): void {
    const isAddress = /^\s*file:/i.test(text)
    const paths = isAddress ? pathsOfAddress(text) : [text]
    if (paths === null) this.doubt = 'its address of a file cannot be read'
    else if (this.paths.length + paths.length > limits.paths) this.doubt = 'its input names too many paths'
    else this.paths.push(...paths)
  }
}

function kindOf(field: string): Kind | null {
  const words = wordsOf(field)
  const last = words.at(-1) ?? ''
  const kind = kinds.get(last) ?? kinds.get(`${words.at(-2) ?? ''}${last}`) ?? null
  return kind === 'text' && !textNames.has(words.join('_')) ? null : kind
}
const wordsOf = (field: string): string[] =>
  field
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .map((word) => word.replace(/\d+$/, ''))
    .filter((word) => word !== '')

/** Says whether what stands under the name is a command line, or the words of one. */
export const isCommandField = (field: string): boolean => isCommand(kindOf(field))
const isCommand = (kind: Kind | null): boolean => kind === 'command' || kind === 'commands'

interface Field {
  name: string
  item: unknown
  /** The field holds a program's arguments: they stand behind the program's name already. */
  isGiven: boolean
}

/** The fields, with `{ command: 'git', args: ['push'] }` as one line. `kind`: that of the field that holds these. */
function withArguments(entries: readonly [string, unknown][], kind: Kind | null): Field[] {
  const fields = entries.map(([name, item]): Field => ({
    name,
    item,
    isGiven: argumentNames.has(wordsOf(name).join('')),
  }))
  const isProgram = ({ name, item, isGiven }: Field) =>
    !isGiven && isCommand(kindOf(name) ?? kind) && (typeof item === 'string' || Array.isArray(item))
  const given = fields.filter(({ isGiven }) => isGiven).map(({ item }) => lineOf(item) ?? '')
  const text = given.filter((line) => line !== '').join(' ')
  if (text === '' || !fields.some(isProgram)) return fields.map((field) => ({ ...field, isGiven: false }))
  return fields.map((field) => (isProgram(field) ? { ...field, item: `${lineOf(field.item)} ${text}` } : field))
}
const lineOf = (item: unknown): string | null =>
  Array.isArray(item) ? commandOf(item) : typeof item === 'string' ? item : null

const looksLikePath = (text: string): boolean =>
  text.length <= 8_192 && /^\s*(?:~?\/|~$|\.\.?(?:\/|$)|\.[A-Za-z_][\w.-]*\s*$)[^\n]*$/.test(text)

/**
 * Returns the paths that tools make of the address of a file: some read it, others take its beginning away. null: nobody knows what a tool
 * makes of it.
 */
function pathsOfAddress(text: string): string[] | null {
  const address = text.trim()
  try {
    const starts = ['file:', 'file://'].filter((start) => address.toLowerCase().startsWith(start))
    const cut = starts.map((start) => address.slice(start.length).replace(/^\/+/, '/'))
    return [...new Set([fileURLToPath(new URL(address)), ...cut])]
  } catch {
    return null
  }
}

/** An argv array: what a shell is told to run, else the words. */
function commandOf(words: readonly unknown[]): string {
  const argv = words.map((word) => (typeof word === 'string' ? word : jsonOf(word)))
  const [shell, flag, script] = argv
  if (argv.length === 3 && isSystemShell(shell ?? '') && /^-l?c$/.test(flag ?? '')) return script ?? ''
  return argv.join(' ')
}
function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return '[nested too deep to be shown]'
  }
}

/** The part of a tool's input by which a person knows the call: its command, path, address; null when there is none. */
export function mainInput(input: unknown): string | null {
  if (typeof input !== 'object' || input === null) return null
  for (const name of mainFields) {
    const text = mainText(input, name)
    if (text !== null) return text
  }
  return null
}

/** The text of that field, of a command with what the program is given. */
export function mainText(input: object, field: (typeof mainFields)[number]): string | null {
  const item = withArguments(Object.entries(input), null).find(({ name }) => name === field)?.item
  return typeof item === 'string' || isCommandField(field) ? lineOf(item) : null
}
