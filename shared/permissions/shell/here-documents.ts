interface Pending {
  delimiter: string
  isQuoted: boolean
  stripsTabs: boolean
  /** The depth of the substitution that it stands in. */
  depth: number
}
interface Read {
  end: number
  texts: string[]
  /** The ones whose substitutions the shell carries out. */
  expanded: string[]
  isDoubtful: boolean
}

/** Delimiters that all shells read alike. */
const delimiters = /^(?:'([^'\n\\]+)'|"([^"\n\\$`]+)"|(\\?)([\w.!%+,:@^~=/-]+))$/

/** The here-documents whose text begins at the next line end. */
export class HereDocuments {
  #pending: Pending[] = []

  get isPending(): boolean {
    return this.#pending.length > 0
  }

  /** Says whether there is one in the substitution of this depth, or deeper. */
  endsOf(depth: number): boolean {
    return this.#pending.some((one) => one.depth >= depth)
  }

  /** Returns false when it is not certain what ends it. */
  begin(raw: string, { stripsTabs, depth }: { stripsTabs: boolean; depth: number }): boolean {
    const parts = delimiters.exec(raw)
    if (parts === null) return false
    const [, single, double, escape, plain] = parts
    const isQuoted = plain === undefined || escape !== ''
    this.#pending.push({ delimiter: single ?? double ?? plain!, isQuoted, stripsTabs, depth })
    return true
  }

  /** Reads the texts of all that are pending; `start` is where the first line begins. */
  read(text: string, start: number, depth: number): Read {
    const read: Read = { end: start, texts: [], expanded: [], isDoubtful: false }
    for (const one of this.#pending) {
      if (one.depth !== depth) read.isDoubtful = true
      const from = read.end
      const lines = linesUntil(text, from, one)
      if (!lines.isCertain) read.isDoubtful = true
      read.end = lines.end
      const content = text.slice(from, lines.contentEnd)
      read.texts.push(one.isQuoted ? content : content.replaceAll(/\\([$`\\\n])/g, (_, next: string) => next.trim()))
      if (!one.isQuoted) read.expanded.push(content)
    }
    this.#pending = []
    return read
  }
}

function linesUntil(text: string, from: number, { delimiter, isQuoted, stripsTabs, depth }: Pending) {
  let isCertain = true
  let isJoined = false
  for (let at = from; at < text.length;) {
    const lineEnd = text.indexOf('\n', at)
    const end = lineEnd < 0 ? text.length : lineEnd
    let first = at
    if (stripsTabs) while (text[first] === '\t') first++
    if (text.startsWith(delimiter, first)) {
      const after = text.slice(first + delimiter.length, Math.min(end, first + delimiter.length + 20))
      // A line that is joined to the one before it ends nothing.
      if (after === '')
        return { contentEnd: at, end: Math.min(text.length, end + 1), isCertain: isCertain && !isJoined }
      if (depth > 1 && /^\s*\)/.test(after)) isCertain = false
    }
    isJoined = !isQuoted && text[end - 1] === '\\'
    at = end + 1
  }
  return { contentEnd: text.length, end: text.length, isCertain: false }
}
