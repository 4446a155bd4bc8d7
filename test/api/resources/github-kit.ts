import { githubSettings, startFakeGithub } from '../../kit/fake-github.ts'
import { waitFor } from '../../kit/programs.ts'
import type { TestServer } from '../../kit/server.ts'
import { startWithAgent } from './automations-kit.ts'

/** A server that knows a GitHub on loopback, with an agent. */
export async function startWithGithub() {
  const github = await startFakeGithub()
  const { server, agent } = await startWithAgent({ settings: githubSettings(github) })
  const stop = async () => {
    await server.stop()
    await github.stop()
  }
  return { github, server, agent, stop }
}

/** Waits until what follows from the delivery is done. */
export async function workedOff(server: TestServer, id: string): Promise<void> {
  await waitFor(async () => {
    const row = await server.database.root('github_deliveries').where({ id }).first('state')
    return row.state !== 'waiting'
  }, 'the delivery is done')
}
