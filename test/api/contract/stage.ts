import { idFrom } from '../../../shared/lib/ids.ts'
import type { ChangeSetResult } from '../../../shared/device/change-set.ts'
import { FakeDevice, enrol, type FakeRun, type Identity } from '../../kit/fake-device.ts'
import { githubSettings, startFakeGithub, type FakeGithub } from '../../kit/fake-github.ts'
import { startGitServer, type GitServer } from '../../kit/git-server.ts'
import { startMcpServer, type McpHttpServer } from '../../kit/mcp-http-server.ts'
import { startSmtp, type Smtp } from '../../kit/smtp.ts'
import { TestServer, type Person, type ServerOptions } from '../../kit/server.ts'
import { endRun } from '../../kit/end-run.ts'

/** Another server of the stage's database must have the same one. */
export const secretsKey = 'ab'.repeat(32)

/** A server with people, agents, a run that works, and ways to make more of each: what requests of all routes need. */
export class Stage {
  readonly server: TestServer
  readonly admin: Person
  readonly member: Person
  /** Has the only device that is connected, so that nobody else's runs start. */
  readonly worker: Person
  readonly device: FakeDevice
  /** A run of an agent of the worker that stays alive. */
  readonly live: FakeRun & { agentId: string }
  /** Says what the server knows as GitHub. */
  readonly github: FakeGithub
  /** Takes the mail of the server. */
  readonly smtp: Smtp
  private repositories: Promise<GitServer> | null = null
  private tools: Promise<McpHttpServer> | null = null
  private readonly others = new Map<string, Promise<TestServer>>()

  static async start(options: ServerOptions = {}): Promise<Stage> {
    const github = await startFakeGithub()
    const smtp = await startSmtp()
    const mail = { SVC_SMTP_URL: smtp.url, SVC_MAIL_FROM: 'svc@example.com' }
    const settings = { SVC_SECRETS_KEY: secretsKey, SVC_ALLOW_HOSTS: '127.0.0.1', ...mail, ...githubSettings(github) }
    const server = await TestServer.start({ ...options, settings: { ...settings, ...options.settings } })
    const [admin, member] = [await server.addPerson('admin'), await server.addPerson('member')]
    const worker = await server.addPerson('member')
    const device = await FakeDevice.connect(server, { token: worker.token })
    device.changeSetAnswer = () => noChange
    const agent = await server.createAgent({}, worker.token)
    await server.ok(`/agents/${agent.id}/runs`, { body: { prompt: 'Work' }, token: worker.token })
    const live = Object.assign(await device.take(), { agentId: agent.id as string })
    await live.events({ kind: 'text', data: { text: 'Working' } })
    return new Stage({ server, admin, member, worker, device, live, github, smtp })
  }

  private constructor(
    parts: Pick<Stage, 'server' | 'admin' | 'member' | 'worker' | 'device' | 'live' | 'github' | 'smtp'>,
  ) {
    this.server = parts.server
    this.admin = parts.admin
    this.member = parts.member
    this.worker = parts.worker
    this.device = parts.device
    this.live = parts.live
    this.github = parts.github
    this.smtp = parts.smtp
  }

  async stop(): Promise<void> {
    await this.device.disconnect()
    for (const other of this.others.values()) await (await other).stop()
    await this.server.stop()
    await this.github.stop()
    await this.smtp.stop()
    await (await this.repositories)?.close()
    await (await this.tools)?.stop()
  }

  get owner(): Person {
    return this.server.owner
  }

  /** A server of its own of that name, which is set up otherwise: one for all that ask for it. */
  other(name: string, start: () => Promise<TestServer>): Promise<TestServer> {
    const known = this.others.get(name) ?? start()
    this.others.set(name, known)
    return known
  }

  /** A server of git repositories that people name. */
  gitServer(): Promise<GitServer> {
    return (this.repositories ??= startGitServer())
  }

  /** An MCP server that takes who has its key. */
  mcpServer(): Promise<McpHttpServer> {
    return (this.tools ??= startMcpServer('Bearer key-of-tools'))
  }

  /** The id of a new agent. */
  async agent(body: Record<string, unknown> = {}, token?: string): Promise<string> {
    return (await this.server.createAgent(body, token)).id as string
  }

  /** A new agent with a run that waits for a device, and the token that the run would get. */
  async caller(person: Person = this.owner): Promise<{ agentId: string; runId: string; token: string }> {
    const agentId = await this.agent({}, person.token)
    const reply = await this.server.ok(`/agents/${agentId}/runs`, { body: {}, token: person.token })
    if (reply.runPublicId === undefined) throw new Error(`no run: ${JSON.stringify(reply)}`)
    const runId = reply.runPublicId as string
    return { agentId, runId, token: await this.server.runToken(idFrom(runId)) }
  }

  /** Ends a run from outside, between two steps of a request by it. */
  async endRun(runId: string): Promise<void> {
    const ending = { fence: null, exitReason: 'interrupted', errorMessage: null } as const
    await endRun(this.server.database.root, { runId: idFrom(runId), ...ending, at: this.server.world.now() })
  }

  async queuedRun(): Promise<string> {
    return (await this.caller()).runId
  }

  async cancelledRun(): Promise<string> {
    const runId = await this.queuedRun()
    await this.server.ok(`/runs/${runId}/cancel`, { body: {} })
    return runId
  }

  /** An agent whose settings were changed twice, and the first of the two revisions. */
  async revised(): Promise<{ agentId: string; revisionId: string }> {
    const agentId = await this.agent()
    const put = (maxTurns: number) =>
      this.server.ok(`/agents/${agentId}/config`, { method: 'PUT', body: { config: { runtime: { maxTurns } } } })
    const { revision } = await put(5)
    await put(6)
    return { agentId, revisionId: revision.id as string }
  }

  async project(body: Record<string, unknown> = {}): Promise<string> {
    return (await this.server.ok('/projects', { body: { name: 'Project', ...body } })).id as string
  }

  async deletedProject(): Promise<string> {
    const projectId = await this.project()
    await this.server.ok(`/projects/${projectId}`, { method: 'DELETE' })
    return projectId
  }

  async deletedAgent(): Promise<string> {
    const agentId = await this.agent()
    await this.server.ok(`/agents/${agentId}`, { method: 'DELETE' })
    return agentId
  }

  enrolled(): Promise<Identity> {
    return enrol(this.server)
  }

  async folder(body: Record<string, unknown> = {}): Promise<string> {
    const deviceId = body['deviceId'] ?? (await this.enrolled()).publicId
    const reply = await this.server.ok('/folders', {
      body: { displayName: 'site', rootPath: '/home/me/site', deviceId, ...body },
    })
    return reply.shortId as string
  }

  /** The owner of a new workspace. */
  stranger(): Promise<Person> {
    return this.server.addPerson('owner', slug())
  }
}

export const slug = (): string => `s${crypto.randomUUID().slice(0, 18)}`

const noChange: ChangeSetResult = {
  ok: true,
  changeSet: {
    base: { commit: 'a'.repeat(40), branch: 'main' },
    head: { commit: 'a'.repeat(40), branch: 'main' },
    files: [],
    additions: 0,
    deletions: 0,
    diff: '',
    capturedAt: 1_760_000_000_000,
  },
}
