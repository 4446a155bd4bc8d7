import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { allCommands } from '../../cli/arguments/commands.ts'
import { flagsFor, matchCommand, spellingsOf } from '../../cli/arguments/parse.ts'
import { exampleWords } from './example-words.ts'

// What pages tell people to type is a command of svc, with flags that it has.

const root = join(import.meta.dirname, '../..')
const pages = ['README.md', ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))]
const textOf = (page: string) => readFileSync(join(root, page === 'README.md' ? page : `docs/${page}`), 'utf8')

/** Commands between backticks, and those on lines of their own in blocks of commands. */
function commandsIn(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```(?:sh)?\n(.*?)^ *```$/gms)].flatMap(([, lines]) =>
    lines!.split('\n').map((line) => line.trim()),
  )
  const ofBlocks = blocks.map((line) => line.replace(/\s+#.*$/, '')).filter((line) => /^svc [a-z]/.test(line))
  const prose = text.replaceAll(/^ *```.*?^ *```$/gms, '')
  const spans = [...prose.matchAll(/`([^`]*)`/g)].map(([, span]) => span!.replaceAll(/\s+/g, ' '))
  return [...ofBlocks, ...spans.filter((span) => /^svc [a-z]/.test(span))]
}

/** The words of svc alone: not what a shell does with its output, nor what comes next in the line. */
const own = (command: string) => command.split(/\s(?:[|>&;]|\d?>|<)/)[0]!

const commands = await allCommands()

/** A page may speak of all commands of a word: `svc device`, `svc device ...`. */
const isGroup = ([group, more = '...', ...others]: readonly string[]) =>
  more === '...' && others.length === 0 && commands.some(({ name }) => name.startsWith(`${group} `))

describe.each(pages)('%s', (page) => {
  test('names commands of svc, with flags that they have', () => {
    const problems = commandsIn(textOf(page)).flatMap((command) => {
      const words = exampleWords(own(command))
      const match = matchCommand(commands, words)
      if (match === null) return isGroup(words) ? [] : [`${command}: there is no such command`]
      const known = new Set(flagsFor(match.command).flatMap((flag) => spellingsOf(flag)))
      const given = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split('=')[0]!)
      return given
        .filter((flag) => !known.has(flag) && flag !== '--help')
        .map((flag) => `${command}: it has no ${flag}`)
    })
    expect(problems).toEqual([])
  })
})
