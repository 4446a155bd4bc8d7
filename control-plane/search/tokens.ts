import { fold } from './fold.ts'

// The one tokenizer: of what is indexed, and of what is searched for. Its words are of letters, digits and marks alone, so
// each database finds the same ones, and none is an operator.
//
// Scripts without spaces are cut without a dictionary where that is possible: Chinese characters and kana into pairs, which
// are the same in every sentence and with every version of Node. A dictionary cuts the same characters otherwise when others
// stand beside them. Thai and its neighbours are cut by one, since pairs of their signs say too little.

/** A word where it stands in the text. */
export interface Token {
  text: string
  start: number
  end: number
}

/** Words with nothing but signs between them, such as `src/main.ts` or `run_id`: one thing to whoever wrote it. */
export interface TokenGroup {
  tokens: readonly Token[]
  /** Each two neighbours put together, by which `run_id` and `runId` find each other. */
  compounds: readonly string[]
  /** The words of more than two put together; null when they are too many. */
  whole: string | null
}

/** Longer words are cut. A query is not longer either. */
const maxWord = 100
const maxCompound = 60
/** The most words that are put together as a whole. */
const maxWhole = 6

const runs = /[\p{L}\p{N}\p{M}]+/gu
const noWord = /[^\p{L}\p{N}\p{M}]+/u
const isJoined = /^[-._/\\:@#~+'’]{1,2}$/
const pairedPart = String.raw`[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}]+`
const segmentedPart = String.raw`[\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]+`
const unspaced = new RegExp(`(${pairedPart})|(${segmentedPart})`, 'gu')
const isUnspaced = new RegExp(`${pairedPart}|${segmentedPart}`, 'u')
const segmenter = new Intl.Segmenter('th', { granularity: 'word' })

/** Reads a text from its start to its end. */
export function* tokenGroups(text: string): Generator<TokenGroup> {
  let tokens: Token[] = []
  let words: string[] = []
  let end = 0
  for (const { 0: run, index } of text.matchAll(runs)) {
    if (tokens.length > 0 && !isJoined.test(text.slice(end, index))) {
      yield { tokens, ...joined(words) }
      tokens = []
      words = []
    }
    end = index + run.length
    const found = tokensOf(run, index)
    // Tokens are not added by one call: a run may be as long as the text.
    for (const token of found) tokens.push(token)
    words.push(found.length === 1 ? found[0]!.text : '')
  }
  if (tokens.length > 0) yield { tokens, ...joined(words) }
}

/** An empty word joins nothing. */
function joined(words: readonly string[]): Pick<TokenGroup, 'compounds' | 'whole'> {
  const compounds: string[] = []
  for (let i = 1; i < words.length; i++) {
    const [before, word] = [words[i - 1]!, words[i]!]
    if (before !== '' && word !== '' && before.length + word.length <= maxCompound) compounds.push(before + word)
  }
  const isFew = words.length > 2 && words.length <= maxWhole && !words.includes('')
  const whole = isFew ? words.join('') : ''
  return { compounds, whole: whole === '' || whole.length > maxCompound ? null : whole }
}

function tokensOf(run: string, at: number): Token[] {
  if (!isUnspaced.test(run)) return wordsOf(run, at)
  const parts: Token[][] = []
  let done = 0
  for (const match of run.matchAll(unspaced)) {
    if (match.index > done) parts.push(wordsOf(run.slice(done, match.index), at + done))
    const start = at + match.index
    parts.push(match[1] === undefined ? segments(match[0], start) : pairs(match[0], start))
    done = match.index + match[0].length
  }
  if (done < run.length) parts.push(wordsOf(run.slice(done), at + done))
  return parts.flat()
}

/** Returns one word as a rule; folding takes some signs apart into several. */
function wordsOf(run: string, start: number): Token[] {
  const end = start + run.length
  // A longer run is no word of anybody.
  const folded = fold(run.slice(0, 4 * maxWord))
  const words = noWord.test(folded) ? folded.split(noWord) : [folded]
  return words.filter((word) => word !== '').map((word) => ({ text: cut(word), start, end }))
}

/** Cuts a word that is too long, without a half of a character at its end. */
const cut = (word: string): string =>
  word.length <= maxWord ? word : word.slice(0, maxWord).replace(/[\ud800-\udbff]$/, '')

/** Each two neighbours, and the last character, which begins no pair: so each character begins some word. */
function pairs(run: string, start: number): Token[] {
  const folded = fold(run)
  const characters = Array.from(folded)
  // Folding may change the length (half width to full); then the whole run stands for each of its pairs.
  const isSame = folded.length === run.length
  let at = start
  return characters.map((character, index) => {
    const text = character + (characters[index + 1] ?? '')
    const from = at
    at += character.length
    return { text, start: isSame ? from : start, end: isSame ? from + text.length : start + run.length }
  })
}

function segments(run: string, start: number): Token[] {
  return [...segmenter.segment(run)].flatMap(({ segment, index }) => wordsOf(segment, start + index))
}

/** Returns whether a word is of a script that is cut into pairs. */
export const isPaired = (word: string): boolean => new RegExp(`^${pairedPart}$`, 'u').test(word)
