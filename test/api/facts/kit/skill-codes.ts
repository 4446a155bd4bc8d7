import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { halfRequest } from '../../../kit/half-request.ts'
import { TestServer, type Reply } from '../../../kit/server.ts'
import type { Stage } from '../../contract/stage.ts'
import { on } from './recipe.ts'
import type { CodeRecipe } from './resource-facts.ts'
import { makePlugin, makePluginSkill } from './plugins.ts'
import { makeSkill, newBundle } from './skills.ts'

// Codes that all routes below a skill have.

/** The routes below a skill, with a body where one is needed. */
const below = {
  'skills.get': ['GET', ''],
  'skills.update': ['PATCH', '', { name: 'Other' }],
  'skills.delete': ['DELETE', ''],
  'skills.replaceBundle': ['POST', '/replace-bundle', { bundle: newBundle('Other') }],
  'skills.files.content': ['GET', '/files/content?path=SKILL.md'],
  'skills.agents.set': ['PUT', '/agents/', { enabled: true }],
  'skills.agents.clear': ['DELETE', '/agents/'],
  'skills.share': ['POST', '/share', {}],
  'skills.shares.list': ['GET', '/shares'],
  'skills.shares.revoke': ['DELETE', '/shares/shr_0000000000000000'],
} as const
type Below = keyof typeof below

async function ask(stage: Stage, route: Below, skill: string, token?: string): Promise<Reply> {
  const [method, path, body] = below[route]
  const agent = path === '/agents/' ? await stage.agent() : ''
  return stage.server.call(`/skills/${skill}${path}${agent}`, {
    method,
    ...(body !== undefined && { body }),
    ...(token !== undefined && { token }),
  })
}

/** The routes of `skills.ts` among them; the rest are those of `skill-shares.ts`. */
export const skillRoutesBelow = (Object.keys(below) as Below[]).filter((route) => !/share/.test(route))
export const shareRoutesBelow = (Object.keys(below) as Below[]).filter((route) => /share/.test(route))

export const ofSkillRoutes = (
  outcome: string,
  skillOf: (stage: Stage) => Promise<string>,
  routes: readonly Below[],
): CodeRecipe[] => routes.map((route) => on(route, outcome, async (stage) => ask(stage, route, await skillOf(stage))))

/** A slug that two skills have. */
export async function ambiguousSkill(stage: Stage): Promise<string> {
  const { slug } = await makeSkill(stage)
  await makePluginSkill(stage, { slug })
  return slug as string
}

/** Asks in the name of an agent whose run ends before the body is there. */
export async function afterItsRun(stage: Stage, route: Below): Promise<Reply> {
  const [method, path, body = {}] = below[route]
  const { runId, token } = await stage.caller()
  const { id } = await makeSkill(stage)
  const between = () => stage.endRun(runId)
  return halfRequest(stage.server, `/skills/${id}${path}`, { method, body, token, between })
}

const pluginName = 'of-away'

/** Asks a server whose storage is away, and which has a skill with a share link, and a plugin. */
export async function withoutSkillStorage(
  stage: Stage,
  send: (server: TestServer, skill: { id: string; shareToken: string; pluginName: string }) => Promise<Reply>,
): Promise<Reply> {
  const server = await stage.other('without storage of skills', async () => {
    const folder = join(inject('databases').folder, crypto.randomUUID())
    const started = await TestServer.start({ settings: { SVC_DATA_DIR: folder, SVC_ALLOW_HOSTS: '127.0.0.1' } })
    await makeSkill({ server: started })
    await makePlugin({ server: started }, { name: pluginName })
    renameSync(join(folder, 'files'), join(folder, 'away'))
    // No folder any more, so nothing can be looked up in it.
    writeFileSync(join(folder, 'files'), '')
    return started
  })
  const { data } = await server.ok('/skills?sourceType=imported')
  const { id } = data[0]
  const { token: shareToken } = await server.ok(`/skills/${id}/share`, { body: {} })
  return send(server, { id, shareToken, pluginName })
}
