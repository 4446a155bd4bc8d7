/** The beginning of a text: at most so many UTF-16 units. It does not cut a character of two of them in half. */
export function head(text: string, chars: number): string {
  const end = /[\uD800-\uDBFF]$/.test(text.slice(0, chars)) ? chars - 1 : chars
  return text.slice(0, end)
}
