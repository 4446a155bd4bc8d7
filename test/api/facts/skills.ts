import fc from 'fast-check'
import type { Stage } from '../contract/stage.ts'
import { on, patch, plain, post, put } from './kit/recipe.ts'
import type { GoodRequest, Recipe, ResourceFacts } from './kit/resource-facts.ts'
import { afterItsRun, ambiguousSkill, ofSkillRoutes, skillRoutesBelow, withoutSkillStorage } from './kit/skill-codes.ts'
import { makePluginSkill } from './kit/plugins.ts'
import { makeSkill, newBundle, newSlug } from './kit/skills.ts'

const aSkill: Recipe = async (stage) => ({ params: { skillId: (await makeSkill(stage)).id } })
const unknown = '0000000000000000'
const nobody = 'agt_0000000000000000'

const tooMany = Array.from({ length: 201 }, (_, at) => ({ path: at === 0 ? 'SKILL.md' : `${at}.md`, content: 'x' }))
const anOverride = async (stage: Stage): Promise<GoodRequest> => ({
  params: { skillId: (await makeSkill(stage)).id, agentId: await stage.agent() },
})

export const skillFacts: ResourceFacts = {
  requests: {
    'skills.list': plain,
    'skills.create': () => ({ body: { slug: newSlug(), name: 'Release notes', bundle: newBundle() } }),
    'skills.get': aSkill,
    'skills.update': async (stage) => ({ ...(await aSkill(stage)), body: { name: 'Other' } }),
    'skills.delete': aSkill,
    'skills.replaceBundle': async (stage) => ({ ...(await aSkill(stage)), body: { bundle: newBundle('Other') } }),
    'skills.files.content': async (stage) => ({ ...(await aSkill(stage)), query: { path: 'SKILL.md' } }),
    'skills.agents.list': async (stage) => ({ params: { agentId: await stage.agent() } }),
    'skills.agents.set': async (stage) => ({ ...(await anOverride(stage)), body: { enabled: true } }),
    'skills.agents.clear': anOverride,
  },
  codes: [
    ...ofSkillRoutes('404 skill_not_found', () => Promise.resolve(unknown), skillRoutesBelow),
    ...ofSkillRoutes('409 ambiguous_skill_ref', ambiguousSkill, skillRoutesBelow),
    on('skills.agents.list', '404 skill_not_found', ({ server }) => server.call(`/skills/agents/${nobody}`)),
    on('skills.create', '409 duplicate_skill_slug', async (stage) => {
      const { slug } = await makeSkill(stage)
      return stage.server.call('/skills', post({ slug, name: 'Twice', bundle: newBundle() }))
    }),
    on('skills.create', '400 invalid_skill_bundle', ({ server }) =>
      server.call('/skills', post({ slug: newSlug(), name: 'Many', bundle: { files: tooMany } })),
    ),
    on('skills.create', '403 agent_skill_default_forbidden', ({ server, live }) =>
      server.call(
        '/skills',
        post({ slug: newSlug(), name: 'x', enabledByDefault: true, bundle: newBundle() }, live.token),
      ),
    ),
    on('skills.create', '503 skill_bundle_storage_failed', (stage) =>
      withoutSkillStorage(stage, (server) =>
        server.call('/skills', post({ slug: newSlug(), name: 'x', bundle: newBundle() })),
      ),
    ),
    on('skills.replaceBundle', '400 invalid_skill_bundle', async (stage) =>
      stage.server.call(
        `/skills/${(await makeSkill(stage)).id}/replace-bundle`,
        post({ bundle: { files: [{ path: 'a.md', content: 'x' }] } }),
      ),
    ),
    on('skills.replaceBundle', '503 skill_bundle_storage_failed', (stage) =>
      withoutSkillStorage(stage, (server, { id }) =>
        server.call(`/skills/${id}/replace-bundle`, post({ bundle: newBundle('Other') })),
      ),
    ),
    on('skills.files.content', '503 skill_bundle_storage_failed', (stage) =>
      withoutSkillStorage(stage, (server, { id }) => server.call(`/skills/${id}/files/content?path=SKILL.md`)),
    ),
    on('skills.files.content', '404 skill_file_not_found', async (stage) =>
      stage.server.call(`/skills/${(await makeSkill(stage)).id}/files/content?path=other.md`),
    ),
    ...ofSkillRoutes('409 skill_replace_forbidden', async (stage) => (await makePluginSkill(stage)).id, [
      'skills.update',
      'skills.delete',
      'skills.replaceBundle',
    ]),
    on('skills.update', '409 skill_plugin_disabled', async (stage) =>
      stage.server.call(
        `/skills/${(await makePluginSkill(stage, { enabled: false })).id}`,
        patch({ enabledByDefault: true }),
      ),
    ),
    ...ofSkillRoutes(
      '409 skill_plugin_disabled',
      async (stage) => (await makePluginSkill(stage, { enabled: false })).id,
      ['skills.agents.set'],
    ),
    ...ofSkillRoutes('409 builtin_skill_delete_forbidden', async () => 'svc', ['skills.delete']),
    ...(['skills.update', 'skills.delete', 'skills.replaceBundle'] as const).map((route) =>
      on(route, '403 platform_change_requires_run', (stage) => afterItsRun(stage, route)),
    ),
    on('skills.agents.set', '403 agent_self_only', async (stage) =>
      stage.server.call(
        `/skills/${(await makeSkill(stage)).id}/agents/${await stage.agent()}`,
        put({ enabled: true }, stage.live.token),
      ),
    ),
  ],
  withoutCommand: { 'skills.files.content': '`svc api` reads a file of a skill; the documents show no command.' },

  unknownIds: { skillId: unknown },
  things: async ({ server, person: { token } }) => ({ skillId: (await makeSkill({ server }, { token })).id }),
  places: [['skills.list', 'GET', (_, ids) => ({ path: `/skills?q=${ids['skillId']}` })]],
  named: {
    bundle: fc.constantFrom(newBundle(), newBundle('Other')),
    path: fc.constant('SKILL.md'),
    slug: fc.constantFrom('release-notes', 'other-notes'),
    plugin: fc.constant('plug_0000000000000000'),
  },
  hostile: { bundle: fc.constant(newBundle('Do as I say.')) },
  sharp: ['skills.create', 'skills.update', 'skills.replaceBundle', 'skills.agents.set'],
}
