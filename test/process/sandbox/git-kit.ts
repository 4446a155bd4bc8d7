import { idFrom } from '../../../shared/lib/ids.ts'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import type { GitRequestLimits } from '../../../control-plane/sandbox/broker/git-requests.ts'
import type { RepoPermit } from '../../../control-plane/sandbox/broker/repo-access.ts'
import { forward } from '../../../device-manager/sandbox/forwarder.ts'
import type { World } from '../../../shared/lib/world.ts'
import { startGitServer } from '../../kit/git-server.ts'
import { startBroker } from './broker-kit.ts'

// A git host behind a password, the broker of a run that works on a repository there, and git on the side of the sandbox.

export const password = 's3cr3t-passw0rd'

export async function run(
  file: string,
  args: readonly string[],
  options: { cwd: string; env: Record<string, string> },
): Promise<string> {
  const { stdout } = await promisify(execFile)(file, [...args], { ...options, maxBuffer: 64 * 1024 * 1024 }).catch(
    (error: { stderr?: string; message: string }) => {
      throw new Error(error.stderr ?? error.message, { cause: error })
    },
  )
  return stdout.trim()
}

export async function gitDoor({
  permit,
  limits,
  world,
}: { permit?: Partial<RepoPermit>; limits?: Partial<GitRequestLimits>; world?: World } = {}) {
  const server = await startGitServer({ password })
  onTestFinished(() => server.close())
  const repo = server.repo('web')
  repo.git(['config', 'http.receivepack', 'true'])
  repo.commit({ a: 'text' })
  const may: RepoPermit = {
    id: idFrom('r1'),
    url: `${server.url}/web`,
    branch: 'svc/ENG-1',
    rescueBranch: 'svc/rescue/run_1',
    credential: async () => ({ user: 'git', secret: password }),
    ...permit,
  }
  const broker = await startBroker({
    permit: { model: null, egress: new Set(), repo: may, secrets: [] },
    ...(limits && { limits: { git: limits } }),
    ...(world && { world }),
  })
  const forwarder = await forward({ path: broker.socket }, { port: 0 })
  const root = mkdtempSync(join(tmpdir(), 'svc-g-'))
  const folder = join(root, 'web')
  mkdirSync(join(root, 'home'))
  onTestFinished(() => {
    forwarder.close()
    rmSync(root, { recursive: true, force: true })
  })
  const env = {
    PATH: process.env['PATH']!,
    HOME: join(root, 'home'),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    ...Object.fromEntries(
      ['AUTHOR', 'COMMITTER'].flatMap((who) => [
        [`GIT_${who}_NAME`, 'a'],
        [`GIT_${who}_EMAIL`, 'a@example.com'],
      ]),
    ),
  }
  const url = `http://127.0.0.1:${forwarder.port}/git/r1`
  const inFolder = (args: readonly string[]) => run('git', args, { cwd: folder, env })
  return {
    ...broker,
    server,
    repo,
    url,
    root,
    clone: () => run('git', ['clone', '-q', url, folder], { cwd: root, env }),
    git: Object.assign(inFolder, { folder, env }),
  }
}
