import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { contract } from '../../shared/api/index.ts'
import { pathsIn, type Column, type Look, type Section } from '../../shared/api/looks/look.ts'
import { looks } from '../../shared/api/looks/looks.ts'
import { hasPath, replyShapeOf, type ReplyShape } from '../../shared/api/reply-shape.ts'
import { sampleNow, sampleRecord } from '../../test/kit/sample-record.ts'
import { contractCommands } from '../arguments/commands.ts'
import { createPrinter } from './printer.ts'
import { widthOf } from './width.ts'

/** The replies that commands print, each look once as a list and once as a record. */
const shapes = [
  ...new Map(
    contract.flatMap((route) => {
      const shape = route.commands.length === 0 ? null : replyShapeOf(route)
      return shape === null ? [] : [[`${shape.list === null ? 'one' : 'list of'} ${shape.look}`, shape] as const]
    }),
  ),
].sort(([a], [b]) => (a < b ? -1 : 1))

describe('the looks of the records of the contract', () => {
  test.each(shapes)('%s has one', (_, { look, list }) => {
    const found = looks[look]
    expect(found).toBeDefined()
    if (list !== null) expect(found!.columns.length).toBeGreaterThan(1)
  })

  test('every command that prints something names one, and every look is of some record', () => {
    const printing = contractCommands().filter(({ shows }) => shows !== undefined)
    expect(printing.map(({ shows }) => shows!).filter((look) => looks[look] === undefined)).toEqual([])
    // Lists and records of a kind share their looks by more than one schema.
    const used = new Set<string>([...shapes.map(([, { look }]) => look), 'PlatformChange'])
    expect(Object.keys(looks).filter((name) => !used.has(name))).toEqual([])
  })

  test('no look names a field that its record does not have', () => {
    const wrong = shapes.flatMap(([name, { look, record, list }]) =>
      pathsOf(looks[look]!, list !== null)
        .filter((path) => !hasPath(record, path))
        .map((path) => `${name}: ${path}`),
    )
    expect(wrong).toEqual([])
  })

  test('a look that names an unknown field would be seen', () => {
    const [, { record }] = shapes.find(([name]) => name === 'one RunDetail')!
    expect(hasPath(record, 'agent.handle')).toBe(true)
    expect(hasPath(record, 'agent.hande')).toBe(false)
    expect(hasPath(record, 'status.of')).toBe(false)
    const [, { record: entry }] = shapes.find(([name]) => name === 'list of TaskActivity')!
    expect([hasPath(entry, 'data.to'), hasPath(entry, 'kind.to')]).toEqual([true, false])
  })
})

/** All paths of a look that are followed in a record of a list, or in a single one. */
function pathsOf(look: Look, isList: boolean): string[] {
  const below = look.of === undefined ? '' : `${look.of}.`
  const ofColumns = (columns: readonly Column[]) => columns.flatMap(([, shown]) => pathsIn(shown))
  const columns = look.columns.length > 0 ? look.columns : (look.facts ?? [])
  if (isList) return ofColumns(columns)
  const single = [
    ...(look.title === undefined ? [] : pathsIn(look.title)),
    ...(look.under ?? []).flatMap(pathsIn),
    ...ofColumns(look.facts ?? look.columns),
    ...(look.sections ?? []).flatMap(pathsOfSection),
    ...(look.next ?? []).flatMap(({ say, more, when }) => [
      ...pathsIn({ as: 'say', text: say }),
      ...(more === undefined ? [] : pathsIn({ as: 'say', text: more.say })),
      ...(when === undefined ? [] : [when.at]),
    ]),
  ]
  return single.map((path) => below + path)
}

function pathsOfSection(section: Section): string[] {
  if ('text' in section) return [section.text, section.unless ?? []].flat()
  if ('json' in section) return [section.json]
  return [
    section.rows,
    ...section.columns.flatMap(([, shown]) => pathsIn(shown).map((path) => `${section.rows}.${path}`)),
  ]
}

const folder = join(import.meta.dirname, '../../test/fixtures/looks')
const forms = {
  '80': { width: 80, isPlain: false },
  '160': { width: 160, isPlain: false },
  pipe: { width: null, isPlain: true },
} as const

function picture([name, { look, list, record }]: readonly [string, ReplyShape], form: keyof typeof forms): string {
  const printer = createPrinter(
    { look, ...(list !== null && { list, nextFlag: '--after', hasAll: true }) },
    { ...forms[form], colours: 'none', now: sampleNow },
  )
  const rows = [0, 1, 2].map((row) => sampleRecord(record, row))
  const { text, remark } = printer.whole(list === null ? rows[0] : { [list]: rows, nextCursor: 'c2' })
  return `## ${name}\n\n${text}${remark === null ? '' : `[${remark}]\n`}`
}

describe.each(Object.keys(forms) as (keyof typeof forms)[])('pictures: %s', (form) => {
  const file = join(folder, `${form}.txt`)
  const shown = shapes.map((shape) => picture(shape, form)).join('\n')

  test('are as they were kept (SVC_MAKE_PICTURES=1 makes them anew)', () => {
    if (process.env['SVC_MAKE_PICTURES'] === '1') writeFileSync(file, shown)
    expect(shown).toBe(readFileSync(file, 'utf8'))
  })

  test('break the text of a record between words', () => {
    const { width } = forms[form]
    if (width === null) return
    const records = shapes.filter(([, { list }]) => list === null).map((shape) => picture(shape, form))
    // Commands, and words that no line has room for, stay whole to be copied.
    const long = records
      .join('')
      .split('\n')
      .filter((line) => widthOf(line) > width && !/^(Next| {2}or|then): |\S{60}/.test(line))
    expect(long).toEqual([])
  })

  test('have no line of a table that is wider than the terminal, no control character and no raw JSON in a cell', () => {
    const { width } = forms[form]
    const lists = shapes.filter(([, { list }]) => list !== null).map((shape) => picture(shape, form))
    for (const line of lists.join('').split('\n')) {
      if (width !== null && !line.startsWith('##')) expect(widthOf(line), line).toBeLessThanOrEqual(width)
      expect(line).not.toMatch(/[{}]|\[object/)
    }
    expect(shown.replaceAll(/[\n\t]/g, '')).not.toMatch(/\p{Cc}/u)
  })
})
