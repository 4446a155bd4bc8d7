import { expect, test } from 'vitest'
import { z } from 'zod'
import { commandLineOf } from './command-line.ts'
import { fileFlag } from './command.ts'
import { defineRoute } from './route.ts'

const route = defineRoute({
  id: 'boats.paint',
  endpoint: 'PUT /boats/{boatId}',
  summary: 'Paint',
  params: z.object({ boatId: z.string() }),
  body: z
    .object({
      colour: z.string().nullable(),
      coats: z.number(),
      isDry: z.boolean(),
      words: z.array(z.string()),
      text: z.string(),
      deep: z.object({ keel: z.string(), mast: z.string() }).partial(),
    })
    .partial(),
  cli: {
    command: 'boat paint',
    positionals: [{ name: 'boat', target: 'params.boatId' }],
    flags: { text: null, 'text-file': fileFlag('body.text', 'the text'), keel: { target: 'body.deep.keel' } },
    example: 'svc boat paint x',
  },
})
const line = (body: unknown, boatId = 'x') => commandLineOf(route, route.commands[0]!, { params: { boatId }, body })

test.each([
  [{}, ''],
  [null, ''],
  [{ colour: 'red' }, ' --colour red'],
  [{ colour: null, coats: 2, isDry: false }, ' --colour none --coats 2 --no-is-dry'],
  [{ words: ['a b', 'c'] }, " --words 'a b' --words c"],
  [{ colour: '-red' }, ' --colour=-red'],
  [{ colour: '$(rm x); `y` "z"\n' }, ' --colour \'$(rm x); `y` "z"\n\''],
  [{ colour: "it's" }, String.raw` --colour 'it'\''s'`],
  [{ text: 'a b' }, " --text-file <(printf %s 'a b')"],
  [{ deep: { keel: 'lead' } }, ' --keel lead'],
  [{ colour: 'x'.repeat(1_001) }, ` --colour '${'x'.repeat(1_000)}…'`],
])('%j', (body, flags) => {
  expect(line(body)).toBe(`svc boat paint x${flags}`)
})

test.each([{ deep: { keel: 'lead', mast: 'oak' } }, { words: [] }, { unknown: 1 }, { coats: null }, [1], 'text'])(
  'there is no command for %j, which has something without a flag',
  (body) => {
    expect(line(body)).toBeNull()
  },
)

test('a positional is quoted, too', () => {
  expect(line({}, 'a; b')).toBe("svc boat paint 'a; b'")
})
