import type { Person } from '../../kit/server.ts'
import { automationRequests } from './automation-recipes.ts'
import { conversationRequests } from './conversation-recipes.ts'
import { gateRequests } from './gate-recipes.ts'
import { slug, type Stage } from './stage.ts'
import { taskRequests } from './task-requests.ts'

/** A request of each route that must succeed: the ids, body and caller it needs, made anew for each call. */
export interface GoodRequest {
  /** Values of the path's parameters. */
  params?: Readonly<Record<string, string>>
  body?: unknown
  /** Default: the owner's. */
  token?: string
  headers?: Readonly<Record<string, string>>
  /** The caller is gone afterwards: a second request is another caller's. */
  endsCaller?: true
}
type Recipe = (stage: Stage) => Promise<GoodRequest> | GoodRequest

const plain: Recipe = () => ({})
const anAgent: Recipe = async (stage) => ({ params: { agentId: await stage.agent() } })
const aProject: Recipe = async (stage) => ({ params: { projectId: await stage.project() } })
const ownWorkspace: Recipe = ({ owner }) => ({ params: { workspaceId: owner.workspaceId } })
const liveRun: Recipe = ({ live }) => ({ params: { runId: live.runId } })
const ofStranger = (person: Person) => ({ params: { workspaceId: person.workspaceId }, token: person.token })

const agents: Record<string, Recipe> = {
  'agents.list': plain,
  'agents.create': () => ({ body: { name: 'Builder' } }),
  'agents.get': anAgent,
  'agents.update': async (stage) => ({ ...(await anAgent(stage)), body: { description: 'Builds' } }),
  'agents.delete': anAgent,
  'agents.restore': async (stage) => ({ params: { agentId: await stage.deletedAgent() } }),
  'agents.config.get': anAgent,
  'agents.config.put': async (stage) => ({
    ...(await anAgent(stage)),
    body: { config: { runtime: { maxTurns: 7 } } },
  }),
  'agents.revisions.list': anAgent,
  'agents.revisions.get': async (stage) => ({ params: await stage.revised() }),
  'agents.revisions.rollback': async (stage) => ({ params: await stage.revised() }),
  'agents.history.list': anAgent,
  'agents.history.revert': async (stage) => {
    const { agentId, revisionId } = await stage.revised()
    return { params: { agentId, entryId: revisionId } }
  },
  'agents.identity.get': anAgent,
  'agents.identity.putAgentMd': async (stage) => ({ ...(await anAgent(stage)), body: { agentMd: '# Be brief' } }),
  'agents.audit': anAgent,
  'agents.clone': async (stage) => ({ ...(await anAgent(stage)), body: { name: 'Copy' } }),
  'agents.transferOwner': async (stage) => ({
    ...(await anAgent(stage)),
    body: { newOwnerId: stage.member.userId },
  }),
  'agents.projects': anAgent,
  'agents.sessions.reset': anAgent,
  'agents.runs.start': async (stage) => ({ ...(await anAgent(stage)), body: { prompt: 'Build' } }),
}

const runs: Record<string, Recipe> = {
  'runs.list': plain,
  'runs.get': liveRun,
  'runs.events.list': liveRun,
  'runs.events.get': async ({ server, live }) => {
    const { data } = await server.ok(`/runs/${live.runId}/events`)
    return { params: { runId: live.runId, eventId: data[0].id } }
  },
  'runs.context': liveRun,
  'runs.manifest': liveRun,
  'runs.changeSet': liveRun,
  'runs.cancel': async (stage) => ({ params: { runId: await stage.queuedRun() }, body: { reason: 'enough' } }),
  'runs.retry': async (stage) => ({ params: { runId: await stage.cancelledRun() }, body: { reason: 'again' } }),
  'runs.output': ({ live }) => ({ params: { runId: live.runId }, token: live.token, body: { data: { n: 1 } } }),
}

const workspaces: Record<string, Recipe> = {
  'workspaces.current': plain,
  'workspaces.create': () => ({ body: { name: 'Acme', slug: slug() } }),
  'workspaces.bySlug': () => ({ params: { slug: 'main' } }),
  'workspaces.get': ownWorkspace,
  'workspaces.update': async (stage) => ({ ...(await ownWorkspace(stage)), body: { contextMd: '# Context' } }),
  'workspaces.delete': async (stage) => {
    const person = await stage.stranger()
    const { name } = await stage.server.ok('/workspaces', { token: person.token })
    return { ...ofStranger(person), body: { confirmName: name }, endsCaller: true }
  },
  'workspaces.company.update': async (stage) => ({ ...(await ownWorkspace(stage)), body: { name: 'Acme Inc.' } }),
  'workspaces.pauseAgents': async (stage) => ofStranger(await stage.stranger()),
  'workspaces.resumeAgents': async (stage) => ofStranger(await stage.stranger()),
  'workspaces.archive': async (stage) => ofStranger(await stage.stranger()),
  'workspaces.export': ownWorkspace,
  'workspaces.stats': plain,
  'workspaces.companyConfig.get': ownWorkspace,
  'workspaces.companyConfig.update': async (stage) => ({ ...(await ownWorkspace(stage)), body: { maxTurns: 200 } }),
  'user.workspaces.list': plain,
  'members.list': plain,
  'workspaces.members.list': ownWorkspace,
  'workspaces.leave': async (stage) => ({
    ...ofStranger(await stage.server.addPerson('member')),
    endsCaller: true,
  }),
}

const projects: Record<string, Recipe> = {
  'projects.list': plain,
  'projects.create': () => ({ body: { name: 'Site' } }),
  'projects.get': aProject,
  'projects.update': async (stage) => ({ ...(await aProject(stage)), body: { description: 'The site' } }),
  'projects.delete': aProject,
  'projects.restore': async (stage) => ({ params: { projectId: await stage.deletedProject() } }),
  'projects.config.get': aProject,
  'projects.config.update': async (stage) => ({ ...(await aProject(stage)), body: { status: 'completed' } }),
  'projects.transferOwner': async (stage) => ({
    ...(await aProject(stage)),
    body: { newOwnerId: stage.member.userId },
  }),
}

const aDevice: Recipe = async (stage) => ({ params: { id: (await stage.enrolled()).deviceId } })
const aFolder: Recipe = async (stage) => ({ params: { shortId: await stage.folder() } })
const devices: Record<string, Recipe> = {
  'devices.list': plain,
  'devices.update': async (stage) => ({ ...(await aDevice(stage)), body: { maxConcurrentRuns: 2 } }),
  'devices.delete': aDevice,
  'folders.list': plain,
  'folders.create': async (stage) => ({
    body: { displayName: 'site', rootPath: '/home/me/site', deviceId: (await stage.enrolled()).publicId },
  }),
  'folders.update': async (stage) => ({ ...(await aFolder(stage)), body: { repoId: crypto.randomUUID() } }),
  'folders.delete': aFolder,
  'folders.gitRemote': aFolder,
}

/** By the id of the route, as in the contract. */
export const goodRequests: Readonly<Record<string, Recipe>> = {
  ...agents,
  ...runs,
  ...workspaces,
  ...projects,
  ...devices,
  ...taskRequests,
  ...gateRequests,
  ...automationRequests,
  ...conversationRequests,
  'openapi.get': plain,
}
