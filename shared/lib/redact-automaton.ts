/**
 * An Aho-Corasick automaton. After a mismatch it goes on with the longest partial match that is left, so that no
 * self-overlapping pattern slips through.
 *
 * Only the states in which patterns part, and the one without a match, have a row of the table, with the next state for
 * each byte. The others are most of all states where values are long: each knows the one byte that goes on, and falls
 * back from any other. So a key of three thousand characters, which shows up in a dozen forms, takes a megabyte and not ten.
 *
 * `nextEntry` gives the next state, or below 0 an event that the scanner handles: `skipByte`, `escapeByte`, or a state that
 * ends a pattern (`decodeState`).
 */
export interface Automaton {
  /** Column of each byte. */
  columnOf: Uint8Array
  /** Row length of the table. */
  columns: number
  /** Entries by row and column. */
  rows: Int32Array
  /** The place in `rows` where the row of a state begins; -1: it has none. */
  rowOf: Int32Array
  /** The only entry by which a state without a row goes on, and its column; `noColumn`: there is none. */
  onlyEntry: Int32Array
  onlyColumn: Uint8Array
  /** Column by which a state was entered. */
  via: Uint8Array
  /** The state of the longest partial match that is left after a mismatch. */
  failure: Int32Array
  /** Bytes of the longest partial match in a state, without skipped bytes. */
  depth: Int32Array
  /** The longest pattern that ends in a state: its length and its index in `labels`; length 0: none. */
  outLength: Int32Array
  outLabel: Int32Array
  labels: readonly string[]
  /** Column of all white space, where a run of it counts as one; -1: it does not. */
  spaceColumn: number
  /** The role of a byte of the column within a partial match: `skipByte`, `escapeByte` or 0. */
  within: Int8Array
}

interface Pattern {
  bytes: Uint8Array
  label: string
}

/** `white_space`: a run of it in a pattern stands for any run. `line_ends`: the text's line ends are ignored. */
type PassOver = 'white_space' | 'line_ends'

export const skipByte = -1
export const escapeByte = -2

function encodeState(state: number): number {
  return -3 - state
}
export function decodeState(entry: number): number {
  return -3 - entry
}

const escape = 0x1b
const lineEnds = [0x0a, 0x0d]
const whiteSpace = [0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20]

/** The number stands for no column, since it is more than there are: patterns are UTF-8, in which 13 values of a byte never occur. */
const noColumn = 255

/** Returns the entry after `byte`. In state 0 nothing is held, so there is nothing to skip in it. */
export function nextEntry(automaton: Automaton, from: number, byte: number): number {
  const column = automaton.columnOf[byte]!
  const { rows, rowOf, onlyColumn, onlyEntry, failure } = automaton
  for (let state = from; ; state = failure[state]!) {
    const row = rowOf[state]!
    if (row >= 0) return rows[row + column]!
    if (onlyColumn[state] === column) return onlyEntry[state]!
    // The states that it falls back to were entered by the same byte, so the same is skipped in them.
    const event = state === from ? eventOf(automaton, state, column) : 0
    if (event !== 0) return event
  }
}

function eventOf(
  { within, spaceColumn, via }: Pick<Automaton, 'within' | 'spaceColumn' | 'via'>,
  state: number,
  column: number,
): number {
  return column === spaceColumn && via[state] === column ? skipByte : within[column]!
}

interface Links {
  /** The rows of an automaton, but with states alone. */
  rows: Int32Array
  rowOf: Int32Array
  child: Int32Array
  via: Uint8Array
  failure: Int32Array
}

function follow({ rows, rowOf, child, via, failure }: Links, from: number, column: number): number {
  for (let state = from; ; state = failure[state]!) {
    const row = rowOf[state]!
    if (row >= 0) return rows[row + column]!
    const next = child[state]!
    if (next !== 0 && via[next] === column) return next
  }
}

interface Trie {
  child: Int32Array
  via: Uint8Array
  depth: Int32Array
  outLength: Int32Array
  outLabel: Int32Array
  /** Children by column, of the nodes that have more than one, and of the root. */
  branches: Map<number, Map<number, number>>
  size: number
}

export function buildAutomaton(patterns: readonly Pattern[], passOver: PassOver): Automaton {
  const { columnOf, columns, spaceColumn } = columnsOf(patterns, passOver)
  const symbolsOf = (bytes: Uint8Array) => {
    const symbols = new Uint8Array(bytes.length)
    let count = 0
    for (const byte of bytes) {
      const symbol = columnOf[byte]!
      if (symbol !== spaceColumn || count === 0 || symbols[count - 1] !== spaceColumn) symbols[count++] = symbol
    }
    return symbols.subarray(0, count)
  }
  const labels = [...new Set(patterns.map((pattern) => pattern.label))]
  const words = patterns.map((pattern) => ({ symbols: symbolsOf(pattern.bytes), label: labels.indexOf(pattern.label) }))
  const trie = buildTrie(words)
  const links = linkFailures(trie, columns)
  const hasEscape = patterns.some((pattern) => pattern.bytes.includes(escape))
  const within = new Int8Array(columns)
  if (!hasEscape) within[columnOf[escape]!] = escapeByte
  if (passOver === 'line_ends') for (const byte of lineEnds) within[columnOf[byte]!] = skipByte
  const { via, depth, outLength, outLabel } = trie
  const { rowOf, failure } = links
  const entries = entriesOf(trie, links, { columns, within, spaceColumn })
  return { ...entries, rowOf, via, failure, columnOf, columns, depth, outLength, outLabel, labels, spaceColumn, within }
}

/** Marks the states that end a pattern, and adds the events to the rows. */
function entriesOf(
  { child, via, outLength, size }: Trie,
  { rows, rowOf }: Links,
  { columns, ...events }: { columns: number; within: Int8Array; spaceColumn: number },
): Pick<Automaton, 'rows' | 'onlyEntry' | 'onlyColumn'> {
  const entry = (state: number) => (outLength[state] === 0 ? state : encodeState(state))
  const onlyColumn = new Uint8Array(size).fill(noColumn)
  for (let state = 0; state < size; state++) {
    const row = rowOf[state]!
    if (row < 0) {
      const only = child[state]!
      if (only === 0) continue
      onlyColumn[state] = via[only]!
      child[state] = entry(only)
      continue
    }
    for (let column = 0; column < columns; column++) {
      const event = state === 0 ? 0 : eventOf({ ...events, via }, state, column)
      rows[row + column] = event === 0 ? entry(rows[row + column]!) : event
    }
  }
  return { rows, onlyEntry: child, onlyColumn }
}

/**
 * Bytes that no pattern holds share column 0. Each other byte has a column of its own, except that all white space
 * shares one if a run of it counts as one symbol.
 */
function columnsOf(patterns: readonly Pattern[], passOver: PassOver) {
  const columnOf = new Uint8Array(256)
  const seen = new Set<number>([escape, ...lineEnds])
  for (const pattern of patterns) for (const byte of pattern.bytes) seen.add(byte)
  let columns = 1
  let spaceColumn = -1
  if (passOver === 'white_space') {
    spaceColumn = columns++
    for (const byte of whiteSpace) columnOf[byte] = spaceColumn
  }
  // Patterns are UTF-8, in which 13 byte values never occur: the columns fit into a byte.
  for (const byte of seen) if (columnOf[byte] === 0) columnOf[byte] = columns++
  return { columnOf, columns, spaceColumn }
}

function buildTrie(words: readonly { symbols: Uint8Array; label: number }[]): Trie {
  const room = words.reduce((sum, word) => sum + word.symbols.length, 1)
  const trie: Trie = {
    child: new Int32Array(room),
    via: new Uint8Array(room),
    depth: new Int32Array(room),
    outLength: new Int32Array(room),
    outLabel: new Int32Array(room),
    branches: new Map([[0, new Map()]]),
    size: 1,
  }
  for (const { symbols, label } of words) {
    let node = 0
    for (const symbol of symbols) node = childOf(trie, node, symbol) || addChild(trie, node, symbol)
    // The name of the first of two secrets with the same value stays.
    if (node === 0 || trie.outLength[node] !== 0) continue
    trie.outLength[node] = symbols.length
    trie.outLabel[node] = label
  }
  return trie
}

function childOf({ branches, child, via }: Trie, node: number, symbol: number): number {
  const only = child[node]!
  if (only !== 0) return via[only] === symbol ? only : 0
  return branches.get(node)?.get(symbol) ?? 0
}

function addChild(trie: Trie, node: number, symbol: number): number {
  const { branches, child, via, depth } = trie
  const added = trie.size++
  via[added] = symbol
  depth[added] = depth[node]! + 1
  const branch = branches.get(node)
  const only = child[node]!
  if (branch !== undefined) branch.set(symbol, added)
  else if (only === 0) child[node] = added
  else {
    branches.set(
      node,
      new Map([
        [via[only]!, only],
        [symbol, added],
      ]),
    )
    child[node] = 0
  }
  return added
}

/** Finds, breadth first, where each node falls back to, the rows, and the patterns that end inside others. */
function linkFailures(trie: Trie, columns: number): Links {
  const { branches, child, via, outLength, outLabel, size } = trie
  const rows = new Int32Array(branches.size * columns)
  const rowOf = new Int32Array(size).fill(-1)
  const failure = new Int32Array(size)
  const links: Links = { rows, rowOf, child, via, failure }
  const queue = new Int32Array(size)
  let [head, end, row] = [0, 1, 0]
  const enter = (node: number, from: number) => {
    const fallback = from === 0 ? 0 : follow(links, failure[from]!, via[node]!)
    failure[node] = fallback
    if (outLength[node] === 0) {
      outLength[node] = outLength[fallback]!
      outLabel[node] = outLabel[fallback]!
    }
    queue[end++] = node
  }
  for (; head < end; head++) {
    const node = queue[head]!
    const branch = branches.get(node)
    if (branch === undefined) {
      if (child[node] !== 0) enter(child[node]!, node)
      continue
    }
    for (const each of branch.values()) enter(each, node)
    const at = row
    row += columns
    if (node !== 0)
      for (let column = 0; column < columns; column++) rows[at + column] = follow(links, failure[node]!, column)
    for (const [column, each] of branch) rows[at + column] = each
    rowOf[node] = at
  }
  return links
}

/** Indexed by two bytes in a row, as one number: 1 where the second byte continues what the first began. */
export type BeginTable = Uint8Array

/**
 * Makes the table of beginnings. Most bytes of an output begin nothing, or something that the next byte ends. The first of two bytes is
 * ignored when a resting automaton would be in the same state without it. That takes one look-up for all automata together instead of two
 * for each. The table is read off the automata themselves, so the result is the same as without it.
 */
export function beginsOf(automata: readonly Automaton[]): BeginTable {
  const begins = new Uint8Array(65_536)
  for (const automaton of automata) {
    for (let first = 0; first < 256; first++) {
      const state = nextEntry(automaton, 0, first)
      // The automaton rests after this byte, too, whatever comes next.
      if (state === 0) continue
      for (let second = 0; second < 256; second++) {
        const fresh = nextEntry(automaton, 0, second)
        const isSame = state > 0 && fresh >= 0 && nextEntry(automaton, state, second) === fresh
        if (!isSame) begins[(first << 8) | second] = 1
      }
    }
  }
  return begins
}

/** The first place from `from` on that must be read, at most the last byte, because its successor is not known yet. */
export function nextBegin(buffer: Uint8Array, from: number, begins: BeginTable): number {
  const last = buffer.length - 1
  let byte = buffer[from]!
  for (let at = from; at < last; at++) {
    const next = buffer[at + 1]!
    if (begins[(byte << 8) | next] === 1) return at
    byte = next
  }
  return last
}
