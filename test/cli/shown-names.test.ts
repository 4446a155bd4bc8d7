import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FakeDevice } from '../kit/fake-device.ts'
import { useRealServer } from './real-server.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

// Tables show things by what people call them; JSON has their ids.

describe('on a server', () => {
  const real = useRealServer()
  const shown = async (...line: string[]) => {
    const end = await real.svc([...line, '-o', 'tsv'])
    expect(end.status, end.stderr).toBe(0)
    return end.stdout
  }
  const made = async (...line: string[]) => {
    const end = await real.svc(line)
    expect(end.status, end.stderr).toBe(0)
    return JSON.parse(end.stdout) as { id: string; key: string; handle: string }
  }

  test('the agent, the people, the project and the parent of a task', async () => {
    const builder = await made('agent', 'create', '--name', 'Builder')
    // Whoever makes an agent is told what it may do.
    expect(await shown('agent', 'get', '@builder')).toContain('where it has none, every tool is allowed\n')
    const shop = await made('project', 'create', '--name', 'The shop', '--lead-agent-id', builder.id)
    const parent = await made('task', 'create', '--title', 'Whole', '--assignee', '@builder', '--project-id', shop.id)
    const task = await made('task', 'create', '--title', 'Part', '--parent-task-id', parent.id)

    const list = await shown('task', 'list')
    expect(list).toContain(`${parent.key}\tWhole\topen`)
    expect(list).toMatch(/\t@builder\t.*\tThe shop\n/)
    expect(list).not.toMatch(/agt_|prj_/)
    const one = await shown('task', 'get', task.key)
    expect(one).toContain(`parent\t${parent.key}\n`)
    expect(one).toContain('created by\tOwner\n')
    expect(await shown('project', 'get', shop.id)).toContain('lead\t@builder\n')
    const history = await shown('task', 'get', task.key, '--history')
    expect(history).toContain('\tOwner\tcreated it: Part\tactivity\n')

    await made('task', 'assign', task.key, '--assignee', '@builder')
    await made('task', 'update', task.key, '--priority', 'high', '--title', 'A part')
    await made('task', 'dependency', 'add', task.key, parent.key, '--type', 'related')
    await made('task', 'transition', task.key, '--status', 'cancelled', '--reason', 'not needed')
    const changes = await shown('task', 'history', task.key)
    for (const what of [
      'gave it to @builder',
      'changed title, priority',
      `related it to ${parent.key}`,
      'moved it from open to cancelled: not needed',
    ])
      expect(changes).toContain(`\tOwner\t${what}\tactivity\n`)
    expect(changes).not.toMatch(/agt_|=/)

    expect(JSON.parse((await real.svc(['task', 'get', parent.key])).stdout)).toMatchObject({
      assignee: { type: 'agent', id: builder.id },
    })
  })

  test('the folder of an agent, and what was chosen of the options of a question', async () => {
    const { server } = real
    const device = await FakeDevice.connect(server)
    const { identity } = device
    const folder = await server.ok('/folders', {
      method: 'POST',
      body: { displayName: 'Website', rootPath: '/srv/web', deviceId: identity.publicId },
    })
    const asker = await made('agent', 'create', '--name', 'Asker', '--default-folder-id', folder.shortId)
    expect(await shown('agent', 'get', '@asker')).toContain('folder\tWebsite\n')
    // Whoever may not see the folders keeps the id.
    const runId = await server.startRun(asker.id)
    let run = await device.take()
    for (; run.runId !== runId; run = await device.take()) await run.end()
    const env = { SVC_TOKEN: run.token, SVC_RUN_ID: run.runId, SVC_API_URL: server.url }
    const own = await real.svc(['agent', 'get', '-o', 'tsv'], { env })
    expect(own.stdout).toContain(`folder\t${folder.shortId}\n`)
    const options = ['--option', 'eu=Europe', '--option', 'us=The Americas']
    const asked = await real.svc(['question', 'ask', 'Where?', ...options], { env })
    expect(asked.status, asked.stderr).toBe(0)
    const [{ id }] = (await server.ok('/questions?status=open')).data
    await made('question', 'answer', id, '--select', 'us')
    expect(await shown('question', 'get', id)).toContain('chosen\tThe Americas\n')
    expect(await shown('question', 'list')).toMatch(/\tThe Americas\t(?!us\t)/)
    await run.end('question_asked')
    await device.disconnect()
  })

  test('a run without a task by the words of its prompt', async () => {
    await made('agent', 'create', '--name', 'Talker')
    expect((await real.svc(['agent', 'run', '@talker', '--prompt', 'Say hello\nto everybody'])).status).toBe(0)
    expect(await shown('run', 'list', '--agent', '@talker')).toContain('\tSay hello to everybody\t')
    expect((await shown('run', 'list', '--agent', '@talker', '--limit', '1')).split('\n')).toHaveLength(2)
  })
})

describe('asks', () => {
  let home: ServedHome
  beforeEach(() => {
    home = makeServedHome()
  })
  afterEach(() => home.close())

  const agents = ['agt_8fK2mQ0xPzL4tR7v', 'agt_8fK2mQ0xPzL4tR7w']
  const task = (key: string, assignee: string) => ({
    object: 'task',
    id: `tsk_9wE3mU7xKfA1gN5${key.at(-1)}`,
    key,
    title: 'x',
    status: 'open',
    assignee: { type: 'agent', id: assignee },
    createdBy: { type: 'user', id: 'usr_7aZ1qX5vNmG9kT3r' },
  })
  const tasks = [task('A-1', agents[0]!), task('A-2', agents[1]!), task('A-3', agents[0]!)]

  test('once for all rows, and only for kinds that they show', async () => {
    const asked: string[] = []
    const env = await home.inRun(({ path, query }) => {
      asked.push(query.has('ids') ? `${path}?ids=${query.get('ids')}` : path)
      return path.startsWith('/api/v1/agents')
        ? { body: { object: 'list', data: [{ handle: '@\u001b[31mone' }, null] } }
        : { body: { object: 'list', data: tasks, hasMore: false, nextCursor: null } }
    })
    const end = await home.svc(['task', 'list', '-o', 'table'], { env })
    expect(asked).toEqual(['/api/v1/tasks', `/api/v1/agents?ids=${agents.join(',')}`])
    // What somebody is called cannot steer the terminal, and who is not found keeps the id.
    expect(end.stdout.replaceAll('@[31mone', '@one')).toContain('@one')
    expect(end.stdout).toContain(agents[1])
    expect(end.stdout).not.toContain('\u001b')

    asked.length = 0
    await home.svc(['task', 'list'], { env })
    expect(asked).toEqual(['/api/v1/tasks'])
  })

  test('and shows ids where nobody answers', async () => {
    const env = await home.inRun(({ path }) =>
      path.startsWith('/api/v1/tasks/') ? { body: tasks[0] } : { status: 503, body: {} },
    )
    const end = await home.svc(['task', 'get', 'A-1', '-o', 'tsv'], { env })
    expect(end).toMatchObject({ status: 0, stderr: '' })
    expect(end.stdout).toContain(`assignee\t${agents[0]}\n`)
    expect(end.stdout).toContain('created by\tusr_7aZ1qX5vNmG9kT3r\n')
  })
})
