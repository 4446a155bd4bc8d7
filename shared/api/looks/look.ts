// How a record looks to a person: the columns of its list, the layout of one, and what to do next. A look names fields of the
// record's schema by dotted paths; a path that goes through a list means the values of all its items. Looks are data without
// zod, because `svc` loads them to print and must not pay for the schemas.

/** Dotted paths of a record; the first that leads to something counts. */
export type Path = string | readonly string[]

/** How a value is shown. An empty one has no place in the layout of a single record, and is `-` in a list. */
export type Shown =
  /** Text of people and agents, which a list may cut. */
  | { as: 'text'; at: Path }
  /** An id, key, handle or name that a person types again: never cut. */
  | { as: 'ref'; at: Path }
  /** A word of a closed list, whose underscores become spaces. */
  | { as: 'word'; at: Path }
  /**
   * A state with its colour and, in parentheses, its reason. `waits`: the field that is there while it waits for a person,
   * which counts more, and the word for what it waits for; without one the field has it.
   */
  | { as: 'status'; at: string; why?: readonly string[]; waits?: { at: string; as?: string } }
  | { as: 'time'; at: Path }
  /** The time between two, or since the first. */
  | { as: 'span'; at: string; to: string }
  /** A number of milliseconds. */
  | { as: 'duration'; at: Path }
  | { as: 'dollars'; at: Path }
  | { as: 'cents'; at: Path }
  | { as: 'size'; at: Path }
  /** A number, or how many items a list has. */
  | { as: 'count'; at: Path }
  /** What is said where it is true, and where it is false. */
  | { as: 'flag'; at: Path; yes: string; no: string }
  /** Whoever did it: handle, name or id. */
  | { as: 'person'; at: Path }
  /** The id of a thing that people call otherwise: by its key or name where that can be found out. */
  | { as: 'thing'; of: ThingKind; at: Path }
  /** The keys of an object with their values. */
  | { as: 'pairs'; at: Path }
  /**
   * A sentence with `{path}` in it; empty where one of them is. `{word path}`, `{time path}` and `{task path}` are shown as such, `{since path}`
   * as the time that has passed, `{took path}` as milliseconds, `{who path}` as a person or an agent; a list is counted, or told as
   * `{list path}`.
   */
  | { as: 'say'; text: string }
  /** The first that is not empty. */
  | { as: 'first'; of: readonly Shown[] }
  /** By the word at a path: a sentence for each, and for those that a later release may send. */
  | { as: 'case'; at: string; of: Readonly<Record<string, Shown>>; else: Shown }
  /** Keys of options, by their labels; `among`: the list that has `key` and `label`. */
  | { as: 'choice'; at: string; among: string }

/** Things whose ids a list shows by what people call them: the handle of an agent, the key of a task, the names of all others. */
export const thingKinds = ['agent', 'device', 'folder', 'person', 'project', 'repo', 'task'] as const
export type ThingKind = (typeof thingKinds)[number]

/**
 * The heading in a list, which is also the name of the fact in a single record. `least`: before its text is cut to fewer columns than
 * these, the columns behind it are left out.
 */
export type Column = readonly [title: string, shown: Shown, least?: number]

export type Section =
  /** Text of several lines. `unless`: a field that has nothing where the text is shown. */
  | { heading: string; text: Path; unless?: string }
  /** A list within the record, as a table. */
  | { heading: string; rows: string; columns: readonly Column[] }
  /** Whatever somebody stored, as indented JSON. */
  | { heading: string; json: string }

/** A command to type next, where the field has one of the values (true: it is not empty); the first that fits is shown. */
export interface Next {
  say: string
  /** Another command, on a line of its own. */
  more?: { word: 'or' | 'then'; say: string }
  when?: { at: string; is: readonly (string | boolean)[] }
}

export interface Look {
  /** The field that holds the record; default: it is the reply itself. */
  of?: string
  /** By what a person chooses first: what does not fit a terminal is left out from the end. */
  columns: readonly Column[]
  /** The first line of a single record. */
  title?: Shown
  /** The line below it. */
  under?: readonly Shown[]
  /** Default: the columns. */
  facts?: readonly Column[]
  sections?: readonly Section[]
  next?: readonly Next[]
}

export type Looks = Readonly<Record<string, Look>>

export const text = (...at: readonly string[]): Shown => ({ as: 'text', at })
export const ref = (...at: readonly string[]): Shown => ({ as: 'ref', at })
export const word = (...at: readonly string[]): Shown => ({ as: 'word', at })
export const time = (...at: readonly string[]): Shown => ({ as: 'time', at })
export const person = (...at: readonly string[]): Shown => ({ as: 'person', at })
export const thing = (of: ThingKind, ...at: readonly string[]): Shown => ({ as: 'thing', of, at })
export const count = (...at: readonly string[]): Shown => ({ as: 'count', at })
export const size = (...at: readonly string[]): Shown => ({ as: 'size', at })
export const lasting = (...at: readonly string[]): Shown => ({ as: 'duration', at })
export const dollars = (...at: readonly string[]): Shown => ({ as: 'dollars', at })
export const cents = (...at: readonly string[]): Shown => ({ as: 'cents', at })
export const pairs = (...at: readonly string[]): Shown => ({ as: 'pairs', at })
export const span = (at: string, to: string): Shown => ({ as: 'span', at, to })
export const flag = (at: string, yes: string, no = ''): Shown => ({ as: 'flag', at, yes, no })
export const say = (sentence: string): Shown => ({ as: 'say', text: sentence })
export const first = (...of: readonly Shown[]): Shown => ({ as: 'first', of })
export const caseOf = (at: string, of: Readonly<Record<string, Shown>>, otherwise: Shown): Shown => ({
  as: 'case',
  at,
  of,
  else: otherwise,
})
export const choice = (at: string, among: string): Shown => ({ as: 'choice', at, among })
export const status = (
  at: string,
  more: { why?: readonly string[]; waits?: { at: string; as?: string } } = {},
): Shown => ({
  as: 'status',
  at,
  ...more,
})

/** All paths that are named, for the test that compares them with the schema. */
export function pathsIn(shown: Shown): readonly string[] {
  switch (shown.as) {
    case 'say':
      return [...shown.text.matchAll(/\{(?:\w+ )?([\w.]+)\}/g)].map((match) => match[1]!)
    case 'first':
      return shown.of.flatMap(pathsIn)
    case 'case':
      return [shown.at, ...[...Object.values(shown.of), shown.else].flatMap(pathsIn)]
    case 'choice':
      return [shown.at, `${shown.among}.key`, `${shown.among}.label`]
    case 'span':
      return [shown.at, shown.to]
    case 'status':
      return [shown.at, ...(shown.why ?? []), ...(shown.waits === undefined ? [] : [shown.waits.at])]
    default:
      return typeof shown.at === 'string' ? [shown.at] : shown.at
  }
}
