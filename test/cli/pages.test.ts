import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { made } from '../api/resources/tasks-kit.ts'
import { FakeDevice, type FakeRun } from '../kit/fake-device.ts'
import { HookReceiver } from '../kit/hook-receiver.ts'
import { waitFor } from '../kit/programs.ts'
import { TestServer } from '../kit/server.ts'
import { startSmtp, type Smtp } from '../kit/smtp.ts'
import { blocksOf, commandsOf, pageNames } from './page-blocks.ts'
import { notTyped, notTypedInBoxes, typedElsewhere } from './pages-not-typed.ts'
import { makeHome, type Home } from './run-svc.ts'
import { typePage, type TypedPage } from './typed-page.ts'

// The commands of pages, typed as they stand there against a server with a device. Those that need a whole system are typed by
// whole-pages.test.ts.

const wholePages = ['README.md', 'start.md', 'cli.md', 'team-server.md', 'background-service.md', 'keeping.md']

let home: Home
let server: TestServer
let smtp: Smtp
let device: FakeDevice
/** Where a page is typed. */
let folder: string

beforeEach(async () => {
  home = makeHome()
  folder = join(home.dir, 'work')
  mkdirSync(folder)
  smtp = await startSmtp()
  const mail = { SVC_SMTP_URL: smtp.url, SVC_MAIL_FROM: 'svc@example.com' }
  server = await TestServer.start({ settings: { SVC_ALLOW_HOSTS: '127.0.0.1', ...mail } })
  device = await FakeDevice.connect(server)
  await svc(['login', '--server', server.url, '--token', '-'], { input: server.owner.token })
})
afterEach(async () => {
  await device.disconnect()
  await server.stop()
  await smtp.stop()
  home.remove()
})

/** Calls as the person who has signed in, unless the environment is that of a run. */
const svc = (
  line: readonly string[],
  { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {},
) => home.svc(line, { env, input, cwd: folder })

async function types(page: string, plan: TypedPage = {}): Promise<void> {
  const skips = [...Object.keys(notTyped[page] ?? {}), ...(typedElsewhere[page]?.commands ?? [])]
  const count = await typePage(page, { home, folder, env: {} }, { ...plan, skips })
  expect(count).toBeGreaterThan(0)
}
const runOf = ({ token, runId }: FakeRun) => ({ SVC_TOKEN: token, SVC_API_URL: server.url, SVC_RUN_ID: runId })
const lies = (file: string, text: string) => writeFileSync(join(folder, file), text)
const has = async (...names: string[]) => {
  for (const name of names) await server.createAgent({ name })
}

test('agents.md', async () => {
  lies('AGENT.md', '# Builder\n')
  await types('agents.md', {
    after: {
      'svc agent permissions check': ({ stdout }) =>
        expect(JSON.parse(stdout)).toMatchObject({ answer: 'deny', rule: 'Bash(git push:*)' }),
      'svc agent doctor': ({ stdout }) => expect(JSON.parse(stdout)).toHaveProperty('audit'),
    },
  })
})

test('mail.md', async () => {
  const events = ['approval.requested', 'question.asked', 'run.failed']
  await types('mail.md', {
    after: {
      'svc mail set --events approval': ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ events }),
      'svc mail test': () => expect(smtp.taken).toHaveLength(1),
      'svc mail get': ({ stdout }) =>
        expect(JSON.parse(stdout)).toMatchObject({ events, about: 'mine', isOffered: true }),
      'svc mail set --events none': ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ events: [] }),
    },
  })
})

test('permissions.md', async () => {
  await has('Builder')
  await svc(['agent', 'permissions', 'add', '@builder', '--ask', 'Write'])
  await types('permissions.md', {
    after: {
      'svc agent permissions add': ({ stdout }) => expect(stdout).toContain('Bash(rm:*)'),
      'svc agent permissions check @builder --tool Bash': ({ stdout }) =>
        expect(JSON.parse(stdout)).toHaveProperty('answer'),
    },
  })
})

test('working-with-agents.md', async () => {
  await has('Builder', 'Reviewer')
  let run: FakeRun
  await types('working-with-agents.md', {
    inRun: {
      commands: [
        'svc task get current',
        'svc comment add current',
        'svc task transition current',
        'svc task assign current',
        'svc run output',
        'svc question ask',
      ],
      env: () => runOf(run),
    },
    fill: { $TOKEN: 'a-token-of-a-service' },
    after: {
      'svc task create --title "Fix the login page"': async ({ stdout }) => {
        expect(JSON.parse(stdout)).toMatchObject({ key: 'MAI-1', assignee: { type: 'agent' } })
        run = await device.take()
      },
      'svc question answer': () => run.end('question_asked'),
      'svc approval list': ({ stdout }) => expect(JSON.parse(stdout).data).toHaveLength(1),
      'svc conversation create': isIdle,
    },
    before: {
      'svc approval list': async () => {
        const { agent } = await server.ok(`/runs/${run.runId}`)
        await server.startRun(agent.id)
        run = await device.take()
        const gatedThing = { name: 'Bash', toolArgs: { command: 'npm publish' } }
        const asked = { trigger: 'tool_permission', prompt: 'Allow npm publish?', gatedThing }
        await made(server, '/approvals', asked, run.token)
        await run.end('approval_requested')
      },
      'svc conversation create': () => void endAll(),
    },
  })
})

/** Works on whatever comes, until the device is gone. */
async function endAll(): Promise<void> {
  const isGone = device.closed.then(() => null)
  for (;;) {
    const run = await Promise.race([device.take().catch(() => null), isGone])
    if (run === null) return
    await run.end()
  }
}

/** Waits until no run waits or works. */
const isIdle = async () => {
  await waitFor(async () => {
    const { data } = await server.ok('/runs?status=queued&status=running')
    return data.length === 0
  }, 'no run works')
}

test('harnesses.md', async () => {
  await has('Builder')
  await types('harnesses.md', { fill: { 'set ada ': 'set @ada ' } })
})

test('mcp.md', async () => {
  mkdirSync(join(home.dir, '.codex'))
  await types('mcp.md')
  expect(JSON.parse(readFileSync(join(folder, '.mcp.json'), 'utf8'))).toHaveProperty('mcpServers.svc')
})

test('connections.md', async () => {
  await has('Builder')
  const connect = ['connection', 'create', '--integration-id', 'deepwiki', '--owner-type', 'company']
  await types('connections.md', {
    // The page's own service is an example of one in the catalog of an operator.
    fill: { 'https://tickets.example.com/mcp': 'https://mcp.deepwiki.com/mcp' },
    before: { 'svc mcp create': () => svc(connect) },
  })
})

test('sandbox.md', async () => {
  const store = ['secret', 'create', '--name', 'example', '--env', 'EXAMPLE_TOKEN']
  await types('sandbox.md', { before: { 'svc secret update': () => svc(store, { input: 'a-secret-value' }) } })
})

test('webhooks.md', async () => {
  const receiver = await HookReceiver.start()
  await types('webhooks.md', {
    fill: {
      'https://hooks.example.com/svc': receiver.url,
      'https://hooks.slack.com/services/T00/B00/XXXX': receiver.url,
    },
    after: { 'svc webhook ping': () => receiver.until('ping') },
  })
  await receiver.stop()
})

test('workflows.md', async () => {
  await has('Builder', 'Ann')
  lies('fix_and_review.js', blocksOf('workflows.md', 'js')[0]!)
  const work = async () => {
    await (await device.take()).end()
    const review = await device.take()
    const verdict = ['run', 'output', '--data', '{"verdict":"good","remarks":""}']
    await svc(verdict, { env: runOf(review) })
    await review.end()
  }
  await types('workflows.md', {
    before: {
      'svc workflow runs watch': work,
      'svc workflow runs cancel': () =>
        svc([
          'workflow',
          'start',
          'fix_and_review',
          '--input',
          'problem=x',
          '--input',
          'fixer=@ann',
          '--input',
          'reviewer=@ann',
        ]),
    },
    after: {
      'svc workflow runs get': ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ status: 'completed' }),
    },
  })
})

describe('each command of a page', () => {
  test.each(pageNames)('of %s is typed by a test, or it is said why not', (page) => {
    const elsewhere = typedElsewhere[page]
    const unTyped = commandsOf(page).filter(
      (command) =>
        !Object.keys(notTyped[page] ?? {}).some((begin) => command.startsWith(begin)) &&
        !(elsewhere?.commands ?? []).some((begin) => command.startsWith(begin)),
    )
    const own = readFileSync(join(import.meta.dirname, 'pages.test.ts'), 'utf8')
    const isTyped = wholePages.includes(page) || own.includes(`types('${page}'`)
    expect(isTyped ? [] : unTyped).toEqual([])
    if (elsewhere === undefined) return
    const other = readFileSync(join(import.meta.dirname, elsewhere.test), 'utf8')
    expect(other).toContain(page)
  })

  test('no reason stands for a command that no page has', () => {
    const lists = [typedElsewhere, notTyped, notTypedInBoxes].flatMap(Object.entries).flatMap(([page, listed]) =>
      ('test' in listed ? (listed.commands as readonly string[]) : Object.keys(listed)).map((begin) => ({
        page,
        begin,
      })),
    )
    const idle = lists.filter(({ page, begin }) => !commandsOf(page).some((command) => command.startsWith(begin)))
    expect(idle).toEqual([])
  })
})
