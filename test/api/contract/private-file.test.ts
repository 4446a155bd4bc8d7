import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { contract } from '../../../shared/api/index.ts'
import { defineRoute } from '../../../shared/api/route.ts'
import { goodRequests } from './collected.ts'
import { isUnavailable } from './every-route.ts'
import { readers, type CallerName, type Mark } from './private-file-scene.ts'
import { PrivateFileWalk } from './private-file-walk.ts'
import { Stage } from './stage.ts'

// One private file, everybody, and every route: whoever may not read it finds no trace of it in any answer, and those who may
// find it where it belongs. A new route is walked as well, or refused with a sentence that says what the walk must know of it.

let stage: Stage
let walk: PrivateFileWalk
beforeAll(async () => {
  stage = await Stage.start()
  walk = await PrivateFileWalk.start(stage)
})
afterAll(() => stage.stop())

/** Routes that are not walked, with the reason. */
const notWalked: Readonly<Record<string, string>> = {
  'workspaces.leave': 'it answers nothing, and whoever asks is gone',
}

/** Routes from which nobody has a good answer, with the reason. */
const neverGood: Readonly<Record<string, string>> = {
  'folders.gitRemote': 'no device that has the folder is connected',
}

/** A walk of four thousand requests: seconds, and a minute where all tests run at once. */
const long = { timeout: 300_000 }

type Shown = readonly [marks: readonly Mark[], who?: readonly CallerName[]]
const attachment: Shown = [['id', 'name']]
const row: Shown = [['description', 'hash', 'name', 'text']]

/** What each route shows of the file beyond what it was asked with, and to whom; default all who may read it. */
const shows: Readonly<Record<string, Shown>> = {
  'runs.context': attachment,
  'workspaces.export': [['description', 'hash', 'id', 'name'], ['admin']],
  'tasks.get': attachment,
  'conversations.get': attachment,
  'conversations.messages.list': attachment,
  'messages.get': attachment,
  'messages.edit': [['id', 'name'], ['owner']],
  'tasks.comments.create': [['name']],
  'tasks.comments.list': attachment,
  'files.list': [['description', 'id', 'name']],
  'files.get': [['description', 'hash', 'name', 'relation', 'text']],
  'files.update': [['description', 'hash', 'text']],
  'files.download': [['URL', 'version']],
  'files.revisions.list': [['hash', 'old hash', 'old version', 'version']],
  'files.revisions.download': [['URL', 'old URL']],
  'files.replace': [['description', 'name']],
  'files.transferOwner': [row[0], ['admin', 'owner']],
  'files.relations.list': [['relation']],
}

test(
  'no route shows a private file to who may not read it, and those that show it do so to all who may',
  long,
  async () => {
    for (const route of contract) if (!(route.id in notWalked)) await walk.route(route, goodRequests[route.id])
    expect(walk.leaks).toEqual([])
    expect(walk.shown()).toEqual(
      Object.fromEntries(
        Object.entries(shows).map(([id, [marks, who = readers]]) => [
          id,
          Object.fromEntries(who.map((caller) => [caller, marks])),
        ]),
      ),
    )
    const walked = contract.filter((route) => !(route.id in notWalked) && !isUnavailable(route))
    expect(walk.withoutSuccess(walked)).toEqual(Object.keys(neverGood))
  },
)

const reply = z.object({ data: z.array(z.string()) })

test('a route that comes is walked by itself, and found out when it shows the file', async () => {
  const route = defineRoute({
    id: 'tasks.papers',
    endpoint: 'GET /tasks/{id}/papers',
    summary: 'List the names of what belongs to a task',
    params: z.object({ id: z.string() }),
    query: z.object({ include: z.array(z.enum(['hidden'])).optional() }),
    reply,
  })
  const careless = walk.answeredBy((before) => async (path, options) => {
    if (!/^\/tasks\/\w+\/papers/.test(path)) return before(path, options)
    const names = path.includes('include') ? ['zorilla.txt'] : []
    return { status: 200, headers: new Headers(), body: { data: names } }
  })
  await careless.route(route, () => ({}))
  expect([...new Set(careless.leaks.map((leak) => leak.replace(/_\w{16}/, '_*')))]).toEqual(
    ['stranger', 'agent', 'member'].map(
      (who) => `GET /tasks/tsk_*/papers?include%5B%5D=hidden shows the name of the file to the ${who}.`,
    ),
  )
  expect(walk.leaks).toEqual([])
})

test('a route that nothing is known of is refused with a sentence', async () => {
  const unheard = defineRoute({ id: 'files.thumbnail', endpoint: 'GET /files/{id}/thumbnail', summary: 'One', reply })
  await expect(walk.route(unheard, undefined)).rejects.toThrow(
    'files.thumbnail: there is no request that succeeds in test/api/facts.',
  )
  const below = defineRoute({ id: 'files.page', endpoint: 'GET /files/{id}/pages/{pageNo}', summary: 'One', reply })
  await expect(walk.route(below, () => ({}))).rejects.toThrow('no value for {pageNo} of /files/{id}/pages/{pageNo}')
  const query = z.object({ shelf: z.string().optional() })
  const filtered = defineRoute({ id: 'files.shelf', endpoint: 'GET /files/shelf', summary: 'One', query, reply })
  await expect(walk.route(filtered, () => ({}))).rejects.toThrow(
    'files.shelf: say in private-file-plan.ts what the query key shelf is set to when it is about a file.',
  )
})
