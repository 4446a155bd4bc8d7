import type { FakeDevice } from '../../kit/fake-device.ts'
import { pullOf, sha, type FakeGithub } from '../../kit/fake-github.ts'
import type { TestServer } from '../../kit/server.ts'
import { makeWorkflow, readFlow, settled, startFlow } from './workflows-kit.ts'

// Programs that wait for the checks of a branch, and a GitHub that tells of them.

let count = 0
export const newRepo = () => `acme/waited-${++count}`

export const run = (name: string, conclusion: string | null) => ({
  name,
  status: conclusion === null ? 'in_progress' : 'completed',
  conclusion,
  html_url: `http://127.0.0.1/${name}`,
})

export function setChecks(github: FakeGithub, repo: string, runs: object[]): void {
  github.answers.set(`/${repo}/pulls`, [{ number: 1 }])
  github.answers.set(`/${repo}/pulls/1`, pullOf(repo))
  github.answers.set(`/${repo}/commits/${sha('a')}/check-runs`, { check_runs: runs })
  github.answers.set(`/${repo}/commits/${sha('a')}/status`, { statuses: [] })
}

/** Starts a program that waits for the checks of a branch, and returns the run's id when it does. */
export async function startWait(server: TestServer, repo: string, more = ''): Promise<string> {
  const name = await makeWorkflow(server, `return await checks({ branch: 'topic', repo: '${repo}'${more} })`)
  const id = await startFlow(server, name)
  await settled(server)
  return id
}

/** Has a minute pass, of which the device knows. */
export async function look(server: TestServer, device?: FakeDevice): Promise<void> {
  server.world.advance(60_000)
  await device?.beat()
  await server.plane.sweeper.runAll()
  await settled(server)
}

export const resultOf = async (server: TestServer, id: string) => JSON.parse((await readFlow(server, id)).summary)
