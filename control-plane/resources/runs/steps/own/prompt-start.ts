import { withoutNews } from '../../../../run/wakes/decided-changes.ts'

/** Of a prompt so much is read to find the words that a list shows. */
export const lookedAtChars = 4_000
const shownChars = 200

/** What was asked of the agent stands in a block of quoted lines, where a prompt has words of ours as well. */
const request = /^Request: .*\n((?:>.*(?:\n|$))+)/m
/** A line that tells of an attached file: not everybody who sees the run sees it. */
const toldFile = /^(?:- file_[0-9A-Za-z]{16} |The message has files\.)/
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu

/** The first words of a prompt on one line, by which people tell one run from another; null: it has none. */
export function promptStartOf(begin: string): string | null {
  const told = withoutNews(begin)
  const quoted = request.exec(told)?.[1]
  const lines = (quoted === undefined ? told : quoted.replaceAll(/^> ?/gm, ''))
    .split('\n')
    .filter((line) => !toldFile.test(line))
  const words = lines.join(' ').replaceAll(unprintable, ' ').trim()
  if (words === '') return null
  const shown = Array.from(words)
  return shown.length <= shownChars
    ? shown.join('')
    : `${shown
        .slice(0, shownChars - 1)
        .join('')
        .trimEnd()}…`
}
