import { expect, test } from 'vitest'
import { commitNoise } from '../kit/git-server.ts'
import { repoStage } from '../kit/sandbox-repos.ts'
import { endedRun, hasNoEngine } from '../kit/sandboxes.ts'

const mebi = 2 ** 20
const files = 64
/** What a server may need beside what it had, however large what passes through it is. */
const mostMebi = 400

test.skipIf(hasNoEngine)(
  'a repository of 1 GB is cloned and worked on, and the server keeps none of it in memory',
  { timeout: 400_000 },
  async () => {
    const { repo, wake, server } = await repoStage()
    await commitNoise(repo, { files, bytes: 16 * mebi })
    const before = process.memoryUsage().rss
    let most = before
    const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 100)
    try {
      const change = 'echo more >added; rm file-1; git add -A; git commit -qm "Change two files"; ls | wc -l'
      const runId = await wake(change)
      const run = await endedRun(server, runId, 350_000)
      expect(run, String(run['errorMessage'])).toMatchObject({ status: 'succeeded', exitReason: 'completed' })
      const set = await server.ok(`/runs/${runId}/change-set`)
      const paths = (set.files as { path: string }[]).map(({ path }) => path)
      expect(paths.toSorted()).toEqual(['added', 'file-1'])
      const pushed = repo.git(['ls-tree', '--name-only', `refs/heads/svc/${runId}`]).split('\n')
      expect(pushed).toHaveLength(files)
      expect(pushed).toContain('added')
    } finally {
      clearInterval(timer)
    }
    process.stderr.write(`memory: ${Math.round(before / mebi)} MiB before, ${Math.round(most / mebi)} MiB at most\n`)
    expect((most - before) / mebi).toBeLessThan(mostMebi)
  },
)
