import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { git } from '../kit/system-scenario.ts'
import { exampleWords } from './example-words.ts'
import { commandsOf } from './page-blocks.ts'
import { notTyped } from './pages-not-typed.ts'
import { makeHome, type Home } from './run-svc.ts'
import { typePage, type TypedPage } from './typed-page.ts'

// The pages on which one begins, typed as they stand there on a real server and a real device.

let system: TestSystem
let home: Home
beforeAll(async () => {
  home = makeHome()
  system = await TestSystem.start()
})
afterAll(async () => {
  const { data } = await system.api.call<{ data: { id: string }[] }>('GET', '/runs?status=running&status=queued')
  for (const { id } of data) await system.api.call('POST', `/runs/${id}/cancel`, { force: true })
  await system.stop()
  home.remove()
})

/** A repository with a file, which has the name that pages give it. */
function repository(name: string): string {
  const folder = join(home.dir, name)
  mkdirSync(folder)
  git(folder, 'init', '--quiet', '--initial-branch', 'main')
  writeFileSync(join(folder, 'notes.txt'), 'first\n')
  git(folder, 'add', '.')
  git(folder, '-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '--quiet', '--message', 'first')
  return folder
}

function types(page: string, folder: string, plan: TypedPage = {}): Promise<number> {
  const env = { SVC_DATA_DIR: system.server.dataDir, SVC_STATE_DIR: system.device.stateDir }
  return typePage(
    page,
    { home, folder, env },
    { ...plan, skips: [...Object.keys(notTyped[page] ?? {}), ...(plan.skips ?? [])] },
  )
}

test('README.md', async () => {
  const count = await types('README.md', repository('readme'), {
    after: { 'svc run diff': ({ stdout }) => expect(stdout).toContain('+++ b/notes.txt') },
  })
  expect(count).toBe(5)
})

test('start.md', async () => {
  const count = await types('start.md', repository('start'), {
    before: {
      'svc run retry': async () => {
        await waitFor(async () => {
          const { data } = await system.api.call<{ data: unknown[] }>('GET', '/runs?status=running')
          return data.length === 0
        }, 'the cancelled run has ended')
      },
    },
    fill: { 'my-project': 'start', Tidy: 'Neat', '@tidy': '@neat' },
    after: {
      'svc device status': ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ running: true }),
      'svc run read': ({ stdout }) => expect(stdout).toContain('asked to: note the time'),
      'svc run diff': ({ stdout }) => expect(stdout).toContain('+++ b/notes.txt'),
      'svc task list': ({ stdout }) => expect(JSON.parse(stdout).data).toMatchObject([{ key: 'MAI-1' }]),
    },
  })
  expect(count).toBeGreaterThan(20)
})

test('cli.md', async () => {
  const folder = repository('cli')
  writeFileSync(join(folder, 'token.txt'), `${system.server.token}\n`)
  writeFileSync(join(folder, 'task.md'), 'Note the time.\n')
  for (const parts of [['.local/share/bash-completion/completions'], ['zsh'], ['.config/fish/completions']])
    mkdirSync(join(home.dir, ...parts), { recursive: true })
  const patched = join(home.dir, 'patched')
  execFileSync('git', ['clone', '--quiet', folder, patched])
  const svc = async (...line: string[]) => {
    const env = { SVC_DATA_DIR: system.server.dataDir, SVC_STATE_DIR: system.device.stateDir }
    const end = await home.svc(line, { env, cwd: folder, input: '' })
    expect(end.status, end.stderr).toBe(0)
    return JSON.parse(end.stdout)
  }
  const agent = async (name: string, command: string) =>
    svc('agent', 'create', '--name', name, '--harness', 'command', '--command', command, '--folder', folderId)
  await svc('login')
  const at = JSON.stringify(await svc('folder', 'add', 'cli', '.'))
  const folderId = /fs_\w{16}/.exec(at)![0]
  await agent('Builder', 'date >> notes.txt')
  await agent('Sleeper', 'sleep 600')
  let worked = ''
  await types('cli.md', folder, {
    fill: {
      'https://svc.example.com': system.server.url,
      acme: 'main',
      run_3nB7cW1yHsD5jK9q: () => worked,
    },
    skips: ['svc run read current', 'svc run cancel'],
    after: {
      'svc logout': () => svc('login'),
      'svc run create': ({ stdout }) => {
        worked = /run_\w{16}/.exec(stdout)![0]
      },
      'svc run diff run_3nB7cW1yHsD5jK9q --stat': ({ stdout }) => expect(stdout).toContain('notes.txt'),
    },
    folder: { 'svc run diff run_3nB7cW1yHsD5jK9q |': patched },
  })
  expect(git(patched, 'status', '--porcelain')).toContain('M notes.txt')

  // The two that need a run at work: one is typed by the run itself, the other ends it.
  const typed = commandsOf('cli.md')
  const read = typed.find((command) => command.startsWith('svc run read current'))!
  const cancel = typed.find((command) => command.startsWith('svc run cancel'))!
  await agent('Reader', read)
  await svc('run', 'create', '--agent', '@reader', '--prompt', 'Read.', '--wait')
  const sleeps = (await svc('run', 'create', '--agent', '@sleeper', '--prompt', 'Sleep.')).runPublicId
  await svc(...exampleWords(cancel.replace('run_3nB7cW1yHsD5jK9q', sleeps)))
})

test('team-server.md', async () => {
  const folder = repository('team')
  const operator = { '/etc/svc/server.env': join(folder, 'server.env') }
  await types('team-server.md', folder, {
    fill: operator,
    after: {
      'svc-server user add': ({ stdout }) => expect(JSON.parse(stdout)).toHaveProperty('token'),
      'svc-server login-link': ({ stdout }) => expect(stdout).toContain(system.server.url),
    },
  })
})

test('keeping.md', async () => {
  const keys = `SVC_SECRETS_KEY=${'cd'.repeat(32)} SVC_SECRETS_OTHER_KEY=${'ab'.repeat(32)}`
  await types('keeping.md', repository('keeping'), {
    fill: {
      'svc-server keys': `${keys} svc-server keys`,
      'file:///srv/files': 'file://$HOME/files',
      '/var/lib/svc/files': '$SVC_DATA_DIR/files',
    },
    after: {
      'svc-server usage --workspace': ({ stdout }) => expect(JSON.parse(stdout)).toHaveProperty('databaseBytes'),
      'SVC_FILES_URL=': ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ missing: [], damaged: [] }),
      'svc-server keys rotate-run-tokens': ({ stdout }) => expect(JSON.parse(stdout)).toHaveProperty('oldKeyEndsAt'),
      'svc-server keys rotate': ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ left: 0, unreadable: 0 }),
      'svc-server keys status': ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ left: 0, unreadable: 0 }),
      'svc-server retention': ({ stdout }) =>
        expect(JSON.parse(stdout)).toEqual({ runs: [], taskHistory: null, fileVersions: [] }),
      'svc-server usage': ({ stdout }) => expect(stdout).toMatch(/^ {2}run_events +\d+ /m),
    },
  })
})

test('background-service.md', () => types('background-service.md', home.dir))
