import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allCommands, contractCommands } from '../../cli/arguments/commands.ts'
import { exampleWords } from './example-words.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

// A call of each family of commands in a process of its own, as people start it, and in the one that tests keep.

let home: ServedHome
let env: Record<string, string>
beforeAll(async () => {
  home = makeServedHome()
  env = await home.inRun(() => ({ body: { object: 'list', data: [{ id: 'a' }] } }))
  writeFileSync(join(home.dir, 'key.txt'), 'secret')
})
afterAll(() => home.close())

const familyOf = (name: string) => name.split(' ')[0]!
/** The first of each; those of this machine that ask a server or the daemon have tests of their own. */
const contractLines = [...Map.groupBy(contractCommands(), ({ name }) => familyOf(name)).values()].map(([first]) =>
  exampleWords(first!.example),
)
const localLines = [
  ['api', 'GET', '/runs', '--field', 'status=running'],
  ['complete-words', '--', 'run', 'get', '--ex'],
  ['completion', 'bash'],
  ['config', 'list'],
  ['device', 'spool'],
  ['doctor'],
  ['help', 'exit-codes'],
  // Refused: what is tested is no installed copy.
  ['install'],
  ['uninstall'],
  ['upgrade'],
  ['login'],
  ['logout'],
  ['search', 'umbrella'],
  ['status', '--hours', '8760'],
  ['version'],
  ['whoami'],
  ['auth', 'devices'],
]

test('every family of commands has a line here', async () => {
  const families = new Set((await allCommands()).map(({ name }) => familyOf(name)))
  expect(new Set([...contractLines, ...localLines].map(([family]) => family))).toEqual(families)
})

test.each([...contractLines, ...localLines].map((line) => [line.join(' '), line] as const))(
  'svc %s',
  async (_, line) => {
    const seen = async (isOwnProcess: boolean) => {
      const before = home.api.received.length
      const end = await home.svc(line, { env, cwd: home.dir, input: 'secret', isOwnProcess })
      const asked = home.api.received
        .slice(before)
        .map(({ method, path, query, body }) => JSON.stringify([method, path, [...query], body]))
        // Some ask for several things at once.
        .toSorted()
      return { ...end, asked }
    }
    const own = await seen(true)
    expect(await seen(false)).toEqual(own)
  },
)
