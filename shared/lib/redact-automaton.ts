/**
 * An Aho-Corasick automaton with a full table: one look-up per byte, whatever the number of patterns. After a mismatch
 * it goes on with the longest partial match that is left, so that no self-overlapping pattern slips through.
 *
 * A table entry >= 0 is the next state (already multiplied by the row length). A negative entry is an event that the
 * scanner handles: `skipByte`, `escapeByte`, or a state that ends a pattern (`decodeState`).
 */
export interface Automaton {
  table: Int32Array
  /** Column of each byte. */
  columnOf: Uint8Array
  /** Row length of the table. */
  columns: number
  /** Bytes of the longest partial match in a state, without skipped bytes; indexed by state / columns. */
  depth: Int32Array
  /** The longest pattern that ends in a state: its length and its index in `labels`; length 0: none. */
  outLength: Int32Array
  outLabel: Int32Array
  labels: readonly string[]
}

export interface Pattern {
  bytes: Uint8Array
  label: string
}

/** `white_space`: a run of it in a pattern stands for any run. `line_ends`: the text's line ends are ignored. */
export type PassOver = 'white_space' | 'line_ends'

export const skipByte = -1
export const escapeByte = -2

export function encodeState(state: number): number {
  return -3 - state
}
export function decodeState(entry: number): number {
  return -3 - entry
}

const escape = 0x1b
const lineEnds = [0x0a, 0x0d]
const whiteSpace = [0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20]

interface Trie {
  next: Int32Array
  /** Column by which a node was entered. */
  via: Uint8Array
  depth: Int32Array
  outLength: Int32Array
  outLabel: Int32Array
  size: number
}

export function buildAutomaton(patterns: readonly Pattern[], passOver: PassOver): Automaton {
  const { columnOf, columns, spaceColumn } = columnsOf(patterns, passOver)
  const symbolsOf = (bytes: Uint8Array) => {
    const symbols = Array.from(bytes, (byte) => columnOf[byte]!)
    return symbols.filter((symbol, i) => symbol !== spaceColumn || symbols[i - 1] !== spaceColumn)
  }
  const labels = [...new Set(patterns.map((pattern) => pattern.label))]
  const words = patterns.map((pattern) => ({ symbols: symbolsOf(pattern.bytes), label: labels.indexOf(pattern.label) }))
  const trie = buildTrie(words, columns)
  linkFailures(trie, columns)
  const hasEscape = patterns.some((pattern) => pattern.bytes.includes(escape))
  const table = tableOf(trie, columns, { columnOf, spaceColumn, passOver, hasEscape })
  const { depth, outLength, outLabel } = trie
  return { table, columnOf, columns, depth, outLength, outLabel, labels }
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

function buildTrie(words: readonly { symbols: number[]; label: number }[], columns: number): Trie {
  const room = words.reduce((sum, word) => sum + word.symbols.length, 1)
  const trie: Trie = {
    next: new Int32Array(room * columns),
    via: new Uint8Array(room),
    depth: new Int32Array(room),
    outLength: new Int32Array(room),
    outLabel: new Int32Array(room),
    size: 1,
  }
  for (const { symbols, label } of words) {
    let node = 0
    for (const symbol of symbols) {
      const at = node * columns + symbol
      if (trie.next[at] === 0) {
        const child = trie.size++
        trie.next[at] = child
        trie.via[child] = symbol
        trie.depth[child] = trie.depth[node]! + 1
      }
      node = trie.next[at]!
    }
    // Of two secrets with the same value the name of the first one stays.
    if (node === 0 || trie.outLength[node] !== 0) continue
    trie.outLength[node] = symbols.length
    trie.outLabel[node] = label
  }
  return trie
}

/** Fills in, breadth first, the next state on symbols without a child, and the patterns that end inside others. */
function linkFailures(trie: Trie, columns: number): void {
  const { next, outLength, outLabel } = trie
  const failure = new Int32Array(trie.size)
  const queue = new Int32Array(trie.size)
  let end = 0
  for (let symbol = 0; symbol < columns; symbol++) if (next[symbol] !== 0) queue[end++] = next[symbol]!
  for (let head = 0; head < end; head++) {
    const node = queue[head]!
    const fallback = failure[node]!
    if (outLength[node] === 0) {
      outLength[node] = outLength[fallback]!
      outLabel[node] = outLabel[fallback]!
    }
    for (let symbol = 0; symbol < columns; symbol++) {
      const at = node * columns + symbol
      const onFailure = next[fallback * columns + symbol]!
      const child = next[at]!
      if (child === 0) {
        next[at] = onFailure
      } else {
        failure[child] = onFailure
        queue[end++] = child
      }
    }
  }
}

/** Turns node numbers into row offsets and adds the events. State 0 has no events, since nothing is held there. */
function tableOf(
  trie: Trie,
  columns: number,
  how: { columnOf: Uint8Array; spaceColumn: number; passOver: PassOver; hasEscape: boolean },
): Int32Array {
  const table = trie.next.subarray(0, trie.size * columns)
  for (let node = 0; node < trie.size; node++) {
    for (let symbol = 0; symbol < columns; symbol++) {
      const target = table[node * columns + symbol]!
      table[node * columns + symbol] = trie.outLength[target] === 0 ? target * columns : encodeState(target * columns)
    }
    if (node === 0) continue
    if (!how.hasEscape) table[node * columns + how.columnOf[escape]!] = escapeByte
    if (how.passOver === 'line_ends') {
      for (const byte of lineEnds) table[node * columns + how.columnOf[byte]!] = skipByte
    } else if (trie.via[node] === how.spaceColumn) {
      table[node * columns + how.spaceColumn] = skipByte
    }
  }
  return table
}
