import { onTestFinished } from 'vitest'
import { startGitServer, type GitServer, type TestRepo } from './git-server.ts'
import { cloudServer } from './sandboxes.ts'
import type { TestServer } from './server.ts'

// Cloud runs that work on a repository at a real git host, behind a password that is nowhere in the sandbox.

export const gitPassword = `s3cr3t-${crypto.randomUUID()}`

export interface RepoStage {
  server: TestServer
  repo: TestRepo
  repoId: string
  host: GitServer
  /** By an agent of its own, for a task where there is one. */
  wake: (command: string, how?: RepoWake) => Promise<string>
}

export type RepoWake = { taskOf?: Record<string, unknown>; [setting: string]: unknown }

export async function repoStage({
  files = { 'README.md': 'first\n' },
  settings = {},
}: { files?: Record<string, string> | null; settings?: Record<string, string> } = {}): Promise<RepoStage> {
  const host = await startGitServer({ password: gitPassword })
  onTestFinished(() => host.close())
  const repo = host.repo('team/web')
  repo.git(['config', 'http.receivepack', 'true'])
  if (files !== null) repo.commit(files)
  const server = await cloudServer({ settings: { SVC_ALLOW_HOSTS: '127.0.0.1', ...settings } })
  const { id: repoId } = await server.ok('/repos', { body: { gitRemote: `${host.url}/team/web` } })
  const headers = () => ({ 'idempotency-key': crypto.randomUUID() })
  const envVarName = `REPO_127_0_0_1_${host.port}_TOKEN`
  const secret = await server.ok('/secrets', {
    body: { name: 'git', envVarName, value: gitPassword },
    headers: headers(),
  })
  const wake = async (command: string, { taskOf, ...fields }: RepoWake = {}) => {
    const own = { defaultRepoId: taskOf === undefined ? repoId : null, command, ...fields }
    const agent = { environment: 'cloud', harness: 'command', toolPermissionMode: 'full', ...own }
    const { id: agentId } = await server.createAgent(agent)
    await server.ok(`/secrets/${secret.id}/grants`, { body: { agentId }, headers: headers() })
    const task =
      taskOf && (await server.ok('/tasks', { body: { title: 'Work', force: true, ...taskOf }, headers: headers() }))
    const body = { prompt: 'go', ...(task && { taskId: task.id }) }
    return (await server.ok(`/agents/${agentId}/runs`, { body })).runPublicId as string
  }
  return { server, repo, repoId: repoId as string, host, wake }
}
