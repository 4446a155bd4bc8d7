import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cloneFolder } from '../../shared/runs/repo.ts'
import { isLong } from '../kit/forms.ts'
import { type Fetched, fetchHarness } from '../kit/real-harness.ts'
import { gitPassword, repoStage } from '../kit/sandbox-repos.ts'
import { endedRun, hasNoEngine, imageWith } from '../kit/sandboxes.ts'
import type { StubStep } from '../kit/stub-llm.ts'
import { startModels } from '../kit/watched-models.ts'

// Real harnesses in a sandbox, at work on a repository: with a model and a git host whose credentials are nowhere in there.

const readme = join(cloneFolder, 'README.md')
const programs = [
  {
    harness: 'claude',
    provider: 'ANTHROPIC',
    model: null,
    edits: [
      { tool: { name: 'Read', input: { file_path: readme } } },
      { tool: { name: 'Edit', input: { file_path: readme, old_string: 'first', new_string: 'edited' } } },
    ],
  },
  {
    harness: 'codex',
    provider: 'OPENAI',
    // Its newest one has no shell of its own, but a second program.
    model: 'gpt-5.1-codex',
    edits: [{ tool: { kind: 'shell', command: 'sed -i s/first/edited/ README.md' } }],
  },
] satisfies { harness: 'claude' | 'codex'; provider: string; model: string | null; edits: StubStep[] }[]

interface Look {
  found: string[][]
  memory: { name: string; bytes: number }[]
}

/** npm starts codex by a program for Node beside which the real one lies. */
function alone(fetched: Fetched): Fetched {
  if ('missing' in fetched) return fetched
  const [folder] = globSync('../@openai/codex-*/vendor/*/bin', { cwd: fetched.binDir })
  return { binDir: join(fetched.binDir, folder ?? '.') }
}

// In the short form test/process/sandbox/broker-models has what codex asks for.
for (const { harness, provider, model, edits } of isLong ? programs : programs.slice(0, 1)) {
  const program = hasNoEngine ? { missing: 'no engine' } : alone(fetchHarness(harness))
  test.skipIf('missing' in program)(
    `the real ${harness} edits a file of its repository and commits it, without a key or a password`,
    async () => {
      const { stub, keys, url } = await startModels()
      const key = `sk-${crypto.randomUUID()}`
      const secrets = [key, gitPassword, Buffer.from(`git:${gitPassword}`).toString('base64')]
      const look = readFileSync(join(import.meta.dirname, 'look-for-key.mjs')).toString('base64')
      const texts = secrets.map((secret) => `'${secret.split('').toReversed().join('')}'`)
      const command = [
        'git commit -qam edited',
        `echo ${look} | base64 -d >/tmp/look.mjs`,
        '{ (while :; do git fetch -q origin >/dev/null 2>&1; done) & }',
        `node /tmp/look.mjs ${texts.join(' ')} >/tmp/look.json`,
        'kill $!',
        'svc run output --file /tmp/look.json',
      ].join(' && ')
      await stub.script({ default: { steps: [...edits, { tool: { kind: 'shell', command } }, { text: 'Done.' }] } })
      const { server, repo, wake } = await repoStage({
        settings: {
          SVC_SANDBOX_IMAGE: await imageWith(harness, program as { binDir: string }),
          [`SVC_SANDBOX_${provider}_URL`]: url,
          [`SVC_SANDBOX_${provider}_KEY`]: key,
        },
      })
      const runId = await wake('', { harness, model, command: null })
      expect(await endedRun(server, runId)).toMatchObject({
        status: 'succeeded',
        errorMessage: null,
        environment: { cwd: 'repo-root' },
        effectiveSettings: { accessMode: 'credits' },
      })
      expect(repo.git(['log', '--format=%s', `svc/${runId}`])).toBe('edited\nx')
      expect(repo.git(['show', `svc/${runId}:README.md`])).toBe('edited')
      expect(repo.git(['for-each-ref', '--format=%(refname:lstrip=2)']).split('\n')).toEqual(['main', `svc/${runId}`])
      const changes = (await server.ok(`/runs/${runId}/change-set`)) as { files: object[]; diff: string }
      expect(changes.files).toMatchObject([{ path: 'README.md', status: 'modified' }])
      expect(changes.diff).toMatch(/-first\n\+edited/)
      const { found, memory } = (await server.ok(`/runs/${runId}/output`)).data as Look
      expect(found).toEqual([[], [], []])
      // It looked into the harness and the runner while git was at work beside it.
      const looked = memory.filter(({ bytes }) => bytes > 1_000_000).map(({ name }) => name)
      expect(looked.join('\n')).toMatch(harness)
      expect(looked.join('\n')).toMatch(/device-manager/)
      expect([...keys]).toEqual([harness === 'codex' ? `Bearer ${key}` : key])
      const events = JSON.stringify(await server.ok(`/runs/${runId}/events?limit=200`))
      for (const secret of secrets) expect(events).not.toContain(secret)
    },
  )
}
