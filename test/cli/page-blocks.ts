import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

// The commands of pages, as whoever reads them types them.

const root = join(import.meta.dirname, '../..')
/** README.md, and the pages of docs. */
export const pageNames = [
  'README.md',
  ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md')),
] as const

export const textOfPage = (page: string): string =>
  readFileSync(join(root, page === 'README.md' ? page : `docs/${page}`), 'utf8')

/** The blocks of one language, without what they are indented by. */
export const blocksOf = (page: string, language: string): string[] =>
  [...textOfPage(page).matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^ *\`\`\`$`, 'gms'))].map(
    ([, indent, text]) => text!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )

/** The commands of the blocks of a shell in their order. One may have several lines: after `\`, and in parentheses. */
export function commandsOf(page: string): string[] {
  return blocksOf(page, '(?:sh|console)').flatMap((block) => {
    const commands: string[] = []
    let begun: string | null = null
    for (const line of block.split('\n')) {
      const text: string = begun === null ? line : `${begun}\n${line}`
      begun = isWhole(text) ? null : text
      if (begun === null && text.trim() !== '') commands.push(text.replace(/ {2,}#.*$/, ''))
    }
    if (begun !== null) throw new Error(`${page}: a command does not end: ${begun}`)
    return commands
  })
}
const isWhole = (text: string) => !text.endsWith('\\') && !(text.startsWith('(') && !/^\)$/m.test(text))
