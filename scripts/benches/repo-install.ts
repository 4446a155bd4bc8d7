import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { realWorld } from '../../shared/lib/world.ts'
import { startGitServer, type Tree } from '../../test/kit/git-server.ts'
import type { Bench } from './context.ts'
import { atMost, compare } from './measure.ts'
import { timed } from './file-calls.ts'
import { startServer } from './stack.ts'
import { size } from './sizes.ts'

const count = size(199, 9)
const kilobytes = 4

/** Each time the skill is another one, as it would be where it is new. */
export const repoInstall: Bench = {
  name: 'repo-install',
  about: `the install of a skill of ${count + 1} files from a git repository, against a bare git fetch of the same`,
  async run(context) {
    const git = await startGitServer()
    const server = await startServer(context, { name: 'repo-install', env: { SVC_ALLOW_HOSTS: '127.0.0.1' } })
    try {
      const { id } = await server.call<{ id: string }>('GET', '/workspaces')
      const repo = git.repo('skills.git')
      const files: Tree = Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}.md`, textOf(at)]))
      let round = 0
      const change = () => repo.commit({ skills: { one: { ...files, 'SKILL.md': `Round ${++round}` } } })
      const url = `${git.url}/skills.git`
      const install = async () => {
        change()
        return timed(() => server.call('POST', `/companies/${id}/skills/install-from-repo`, { url }))
      }
      const fetchBare = async () => {
        change()
        const dir = mkdtempSync(join(context.scratch, 'fetch-'))
        const took = await timed(async () => {
          await run('git', ['-C', dir, 'init', '--quiet', '--bare'])
          await run('git', ['-C', dir, 'fetch', '--quiet', '--depth=1', '--no-tags', url, 'main'])
        })
        rmSync(dir, { recursive: true })
        return took
      }
      await install()
      return [
        await compare({
          name: `install of ${count + 1} files`,
          unit: 'ms',
          peerIs: 'git fetch',
          target: atMost(1.5),
          rounds: context.rounds,
          ours: async () => [await install(), await install(), await install()],
          peer: async () => [await fetchBare(), await fetchBare(), await fetchBare()],
        }),
      ]
    } finally {
      await server.end()
      await git.close()
    }
  },
}

const run = promisify(execFile)
const textOf = (seed: number) => Buffer.from(realWorld.bytes(kilobytes * 512)).toString('hex') + String(seed)
