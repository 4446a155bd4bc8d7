import { expect, it } from 'vitest'
import { specOf } from '../../../test/kit/harness-recordings.ts'
import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { HarnessLaunchError } from '../parts/adapter-errors.ts'
import type { GivenSkill } from '../parts/skills.ts'
import { opencodeLaunch } from './launch.ts'

const full: RunSpec['permissions'] = { allow: [], ask: [], deny: [], defaultMode: 'full' }

const noSkills: readonly GivenSkill[] = []
function launch(
  spec: Partial<RunSpec> = {},
  env: Record<string, string> = {},
  mcpServers: McpServers = {},
  skills = noSkills,
) {
  const made = opencodeLaunch(specOf({ harness: 'opencode', ...spec }), {
    env,
    cwd: '/work',
    foldersAround: ['/work', '/'],
    repositoryFolders: [],
    runDir: '/run dir',
    isRoot: false,
    firstStartDir: null,
    loginShell: '/bin/sh',
    version: '1.18.33',
    mcpServers,
    skills,
  })
  return { ...made, settings: JSON.parse(made.env['OPENCODE_CONFIG_CONTENT']!) as Record<string, unknown> }
}

it("gives the workspace's MCP servers to its plugin, not to the variable that tools inherit", () => {
  const { files, env, args } = launch(
    {},
    {},
    {
      files: { type: 'stdio', command: 'files', args: ['--key', 'secret {env:HOME}'], env: { A: 'b' } },
      web: { type: 'sse', url: 'https://x.test', headers: { 'X-Key': 'secret' } },
    },
  )
  const servers = {
    files: {
      timeout: 30_000,
      type: 'local',
      command: ['files', '--key', 'secret {env:HOME}'],
      environment: { A: 'b' },
    },
    web: { timeout: 30_000, type: 'remote', url: 'https://x.test', headers: { 'X-Key': 'secret' } },
  }
  expect(files[0]?.content).toContain(`"mcpServers":${JSON.stringify(servers)}`)
  expect(JSON.stringify([env, args])).not.toContain('secret')
})

it('serves on loopback, with a plugin of the run in which no secret stands', () => {
  const { file, args, io, http, files, settings } = launch()
  expect([file, ...args]).toEqual(['opencode', 'serve', '--hostname', '127.0.0.1', '--port', '0'])
  expect([io, http?.passwordVariable]).toEqual(['http', 'OPENCODE_SERVER_PASSWORD'])
  expect(files.map(({ path }) => path)).toEqual(['/run dir/svc-plugin.mjs'])
  expect(settings['plugin']).toEqual(['file:///run%20dir/svc-plugin.mjs'])
})

it.each([
  ['mode ask', {}, true],
  ['a deny list', { permissions: { ...full, deny: ['Bash'] } }, true],
  ['mode full', { permissions: full }, false],
])('with %s, what a repository brings is kept out where lists have a say', (_, spec, checksCalls) => {
  const { env, settings, files } = launch(spec)
  expect(env['OPENCODE_DISABLE_PROJECT_CONFIG'] === '1').toBe(checksCalls)
  expect('formatter' in settings && 'lsp' in settings).toBe(checksCalls)
  expect(files[0]?.content).toContain(`"checksCalls":${checksCalls}`)
})

it.each([
  [
    '{"theme":"dark","plugin":["mine"],"share":"auto"}',
    { theme: 'dark', plugin: ['mine', expect.any(String)], share: 'disabled' },
  ],
  ['no JSON', { plugin: [expect.any(String)] }],
  ['{"plugin":"mine"}', { plugin: [expect.any(String)] }],
])("keeps the person's %s beside svc's plugin, which comes last", (content, settings) => {
  expect(launch({}, { OPENCODE_CONFIG_CONTENT: content }).settings).toMatchObject(settings)
})

it('needs the provider of a model', () => {
  expect(() => launch({ model: 'sonnet' })).toThrow(HarnessLaunchError)
  expect(() => launch({ model: 'openrouter/anthropic/sonnet' })).not.toThrow()
})

it('names the folder of each skill beside what the person has', () => {
  const knots = { name: 'knots', description: 'Ties.', body: 'Loop.', folder: '/skills/knots', hasFiles: false }
  const theirs = { OPENCODE_CONFIG_CONTENT: JSON.stringify({ skills: { paths: ['/own'], urls: ['u'] } }) }
  expect(launch({}, theirs, {}, [knots]).settings['skills']).toEqual({ paths: ['/own', '/skills/knots'], urls: ['u'] })
  expect(launch({}, {}, {}, [knots]).settings['skills']).toEqual({ paths: ['/skills/knots'] })
  expect(launch({}, {}).settings).not.toHaveProperty('skills')
})
