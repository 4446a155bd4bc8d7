/**
 * Folds a word, so that its spellings are one: capitals, accents, ligatures, full and half width, the vowel signs of Arabic
 * and Hebrew. Marks that make another letter in their script (Thai, Hindi, kana) stay.
 */
export function fold(word: string): string {
  if (isPlain.test(word)) return word
  if (isAscii.test(word)) return word.toLowerCase()
  return (
    word
      .normalize('NFKD')
      // Lower case alone would leave `ß` as it is.
      .toUpperCase()
      .toLowerCase()
      .normalize('NFKD')
      .replaceAll(marks, '')
      .replaceAll(/[øđłæœıς]/g, (letter) => others[letter]!)
      .normalize('NFC')
  )
}

const isPlain = /^[a-z0-9]*$/
const isAscii = /^[\0-\x7f]*$/
/** Marks of no script of their own, but those that voice kana; those of Hebrew; the stretching letter of Arabic. */
const marks = /(?![\u3099\u309a])\p{Script=Inherited}|(?=\p{M})\p{Script=Hebrew}|\u0640/gu
/** Letters that Unicode does not take apart. */
const others: Readonly<Record<string, string>> = { ø: 'o', đ: 'd', ł: 'l', æ: 'ae', œ: 'oe', ı: 'i', ς: 'σ' }
