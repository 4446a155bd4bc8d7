import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NotUsed, Plugin } from '../../../shared/api/plugin-fields.ts'
import { enrol } from '../../kit/fake-device.ts'
import { startGitServer, type GitServer, type Tree } from '../../kit/git-server.ts'
import { outcomeOf, TestServer, type Reply } from '../../kit/server.ts'
import { agentPluginsSchema, bundleOf, newPluginName, pluginFiles, tracker, treeOf } from '../facts/kit/plugins.ts'

// The forms of plugins, and files of strangers that are none.

let server: TestServer, git: GitServer
beforeAll(async () => {
  git = await startGitServer()
  server = await TestServer.start({ settings: { SVC_ALLOW_HOSTS: '127.0.0.1' } })
})
afterAll(async () => {
  await server.stop()
  await git.close()
})

const install = (body: unknown): Promise<Reply> => server.call('/plugins', { body })
const installFiles = (files: Readonly<Record<string, string>>) => install({ bundle: bundleOf(files) })
function repoOf(tree: Tree): string {
  const name = `${newPluginName()}.git`
  git.repo(name).commit(tree)
  return `${git.url}/${name}`
}
const json = JSON.stringify
const why = ({ notUsed }: Plugin) => notUsed.map(({ kind, name, reason }: NotUsed) => [kind, name, reason].join(' '))
const blobCount = async () =>
  Number(((await server.database.root('blobs').count({ n: '*' }).first()) as { n: unknown }).n)
const mcp = (servers: object) => json({ mcpServers: servers })
/** A manifest of Claude's form. */
const ofClaude = (more: object = {}) => ({
  '.claude-plugin/plugin.json': json({ name: newPluginName(), description: 'For Claude.', ...more }),
})
const aSkill = { 'skills/notes/SKILL.md': 'Write.' }

describe('a plugin', () => {
  test('of the open form is read as that, whatever else is in it', async () => {
    const name = newPluginName()
    const { status, body } = await installFiles({
      ...aSkill,
      'skills/README.md': 'no skill',
      'skills/group/deeper/SKILL.md': 'too deep',
      'plugin.json': json({
        $schema: 'https://agent-plugins.org/schemas/1.1.0/plugin.schema.json',
        name,
        version: '2.0.0-beta.1',
        author: { name: 'Acme' },
        license: 'MIT',
        keywords: ['x'],
        extensions: { 'com.example': {} },
        mcpServers: { inline: { command: 'evil-mcp' } },
      }),
      'mcp.json': json({
        $schema: 'https://agent-plugins.org/schemas/1.0.0/mcp.schema.json',
        mcpServers: { tracker, own: { type: 'stdio', command: './bin/server' } },
      }),
      '.mcp.json': mcp({ other: { command: 'other-mcp' } }),
      ...ofClaude({ name: 'another' }),
      'hooks/hooks.json': '{}',
      'commands/run.md': 'x',
      'bin/server': '#!/bin/sh\n',
      'com.example.client/hooks.json': '{}',
      'src/main.ts': 'x',
      'README.md': 'x',
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({ name, version: '2.0.0-beta.1', description: null, format: 'agent_plugins' })
    expect(body.skills.map(({ slug }: { slug: string }) => slug)).toEqual(['notes'])
    expect(body.mcpServers.map((one: { nameInPlugin: string }) => one.nameInPlugin)).toEqual(['tracker'])
    expect(why(body)).toEqual([
      'field extensions not_supported',
      'field mcpServers not_supported',
      'part .mcp.json not_supported',
      'part bin not_supported',
      'part com.example.client not_supported',
      'part commands not_supported',
      'part hooks not_supported',
      'mcp_server own needs_files',
    ])
  })

  test.each<[string, object, Record<string, string>]>([
    ['its usual file', {}, { '.mcp.json': mcp({ tracker }) }],
    ['its usual file without a key around them', {}, { '.mcp.json': json({ tracker }) }],
    ['its manifest', { mcpServers: { tracker } }, { '.mcp.json': mcp({ other: tracker }) }],
    ['a file that its manifest names', { mcpServers: './config/mcp.json' }, { 'config/mcp.json': mcp({ tracker }) }],
  ])('of Claude’s form has its servers in %s', async (_, manifest, files) => {
    const { body } = await installFiles({ ...ofClaude(manifest), ...files, ...aSkill })
    expect([body.format, body.mcpServers.map((one: { nameInPlugin: string }) => one.nameInPlugin)]).toEqual([
      'claude_plugin',
      ['tracker'],
    ])
    expect(why(body)).toEqual([])
  })

  test('of Claude’s form says what else it brings, and keeps its skills where its servers cannot be read', async () => {
    const more = { hooks: './hooks.json', commands: ['./c.md'], agents: './a/', lspServers: {}, skills: './more/' }
    const { body } = await installFiles({
      ...ofClaude({ ...more, outputStyles: './s/', userConfig: {}, mcpServers: '../../etc/passwd' }),
      ...aSkill,
      'agents/a.md': 'x',
      'output-styles/s.md': 'x',
      '.lsp.json': '{}',
      'settings.json': '{}',
      'mcp.json': mcp({ tracker }),
    })
    expect(body.skills).toHaveLength(1)
    expect(why(body)).toEqual([
      ...['hooks', 'commands', 'agents', 'lspServers', 'skills', 'outputStyles', 'userConfig'].map(
        (name) => `field ${name} not_supported`,
      ),
      ...['.lsp.json', 'agents', 'mcp.json', 'output-styles', 'settings.json'].map(
        (name) => `part ${name} not_supported`,
      ),
      'mcp_server ../../etc/passwd invalid_server',
    ])
    for (const servers of [
      '[',
      '[]',
      '"x"',
      mcp({}).slice(0, -1),
      '{"mcpServers": 7}',
      `{"x": "${'x'.repeat(300_000)}"}`,
    ]) {
      const other = await installFiles({ ...ofClaude(), ...aSkill, '.mcp.json': servers })
      expect([servers.slice(0, 20), why(other.body)]).toEqual([
        servers.slice(0, 20),
        ['mcp_server .mcp.json invalid_server'],
      ])
    }
  })

  test('whose plugin.json is of something else is of Claude’s form, or none', async () => {
    const other = { 'plugin.json': json({ name: 'grafana', type: 'panel' }) }
    expect((await installFiles({ ...other, ...ofClaude(), ...aSkill })).body.format).toBe('claude_plugin')
    expect(outcomeOf(await installFiles({ ...other, ...aSkill }))).toBe('400 invalid_plugin')
  })
})

describe('a program of a plugin', () => {
  const servers = { own: { command: '${CLAUDE_PLUGIN_ROOT}/bin/server' }, other: { command: 'other-mcp' } }

  test('has all files of the plugin, which devices get by their hash while the plugin is there', async () => {
    const files = { ...ofClaude(), '.mcp.json': mcp(servers), 'bin/server': '#!/bin/sh\n', 'lib/a.txt': 'x' }
    const { body } = await installFiles(files)
    expect(why(body)).toEqual(['part bin not_supported'])
    const { id, command } = body.mcpServers.find((one: { nameInPlugin: string }) => one.nameInPlugin === 'own')
    const [, hash] = /^\$\{SVC_PLUGIN_([0-9a-f]{64})\}\/bin\/server$/.exec(command)!
    expect((await server.ok(`/mcp-servers/${id}`)).env).toEqual({
      PLUGIN_ROOT: `\${SVC_PLUGIN_${hash}}`,
      CLAUDE_PLUGIN_ROOT: `\${SVC_PLUGIN_${hash}}`,
    })
    const device = await enrol(server)
    const bundle = async () =>
      fetch(`${server.url}/api/device/skills/${hash}`, { headers: { authorization: `Bearer ${device.token}` } })
    const [line] = (await (await bundle()).text()).split('\n')
    expect((JSON.parse(line!).files as { path: string }[]).map(({ path }) => path)).toEqual(
      Object.keys(files).toSorted(),
    )
    const { root } = server.database
    const kept = () => root('skill_bundles').where({ bundle_hash: hash! }).select('retired_at', 'change_id')
    expect(await kept()).toEqual([{ retired_at: null, change_id: null }])

    // The same files are kept, others take their place.
    const update = async (more: object) =>
      server.ok(`/plugins/${body.id}/update`, { body: { bundle: bundleOf({ ...files, ...more }) } })
    expect((await update({})).mcpServers).toEqual(body.mcpServers)
    expect(await kept()).toHaveLength(1)
    const before = await blobCount()
    const next = await update({ 'lib/a.txt': 'y' })
    expect(next.pluginHash).not.toBe(body.pluginHash)
    expect(JSON.stringify(next.mcpServers)).not.toContain(hash)
    expect(await blobCount()).toBe(before + 1)
    await update({ '.mcp.json': mcp({ other: { command: 'other-mcp' } }) })
    await server.ok(`/plugins/${body.id}`, { method: 'DELETE' })
    expect(
      await root('skill_bundles')
        .whereNull('retired_at')
        .whereIn('blob_id', root('blobs').select('id'))
        .where({ bundle_hash: hash! }),
    ).toEqual([])
  })

  test('is left out where the files of the plugin are too many, or are not all files', async () => {
    const tree = { ...treeOf({ ...ofClaude(), '.mcp.json': mcp(servers) }), bin: { server: 'x' } }
    const more: Tree[] = [
      { lib: Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`f${at}`, 'x'])) },
      { link: { mode: '120000', content: '/etc/passwd' } },
      { lib: { large: Buffer.alloc(25 * 1024 * 1024) } },
      { lib: { 'A.md': 'x', 'a.md': 'x' } },
      { lib: { '..': { 'out.md': 'x' } } },
      { 'm.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' },
    ]
    for (const [at, extra] of more.entries()) {
      const name = newPluginName()
      const own = { '.claude-plugin': { 'plugin.json': json({ name }) } }
      const { status, body } = await install({ url: repoOf({ ...tree, ...own, ...extra }) })
      expect([at, status, why(body).at(-1)]).toEqual([at, 201, 'mcp_server own needs_files'])
      expect(body.mcpServers.map((one: { nameInPlugin: string }) => one.nameInPlugin)).toEqual(['other'])
    }
  }, 60_000)
})

const manifest = (more: object = {}) => json({ $schema: agentPluginsSchema, name: 'kit', ...more })
const deep = `{"name":"kit","$schema":"${agentPluginsSchema}","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`

describe('files that are no plugin', () => {
  const cases: Record<string, Record<string, string>> = {
    'without a manifest': aSkill,
    'with nothing in it': { 'plugin.json': manifest() },
    'with hooks alone': { 'plugin.json': manifest(), 'hooks/hooks.json': '{}' },
    'with a manifest in another folder': { 'sub/plugin.json': manifest(), ...aSkill },
    'with an empty manifest': { 'plugin.json': '', ...aSkill },
    'with a manifest that is a list': { '.claude-plugin/plugin.json': '[]', ...aSkill },
    'with a manifest that is cut': { '.claude-plugin/plugin.json': '{"name": "kit"', ...aSkill },
    'with a manifest of 10 MB': { 'plugin.json': manifest({ description: 'x'.repeat(10_000_000) }), ...aSkill },
    'with a schema of another host': {
      'plugin.json': manifest({ $schema: 'https://evil.example/1.0.0/plugin.schema.json' }),
    },
    'with a schema of another version': {
      'plugin.json': manifest({ $schema: agentPluginsSchema.replace('1.0.0', '2.0.0') }),
      ...aSkill,
    },
    'with a version that is no text': { 'plugin.json': manifest({ version: 1 }), ...aSkill },
    'with a description that is no text': { 'plugin.json': manifest({ description: {} }), ...aSkill },
    'that climbs out': { 'plugin.json': manifest(), ...aSkill, '../out.md': 'x' },
    'that climbs out of a skill': { 'plugin.json': manifest(), ...aSkill, 'skills/notes/../../../out.md': 'x' },
    'with an absolute path': { 'plugin.json': manifest(), ...aSkill, '/etc/cron.d/x': 'x' },
    'with two spellings of a file': { 'plugin.json': manifest(), ...aSkill, 'Plugin.json': '{}' },
    'with two spellings of a folder': { 'plugin.json': manifest(), ...aSkill, 'Skills/notes/other.md': 'x' },
    'with two forms of an accent': { 'plugin.json': manifest(), ...aSkill, '\u00fc': 'x', 'u\u0308': 'x' },
    'with a path that cannot be seen': { 'plugin.json': manifest(), ...aSkill, 'a\u202eb': 'x' },
    'with a folder of git': { 'plugin.json': manifest(), ...aSkill, '.git/config': 'x' },
    'with a device of Windows': { 'plugin.json': manifest(), ...aSkill, 'aux.md': 'x' },
    'with too many files': {
      'plugin.json': manifest(),
      ...Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`f${at}`, 'x'])),
    },
    ...Object.fromEntries(
      [
        '',
        'Kit',
        'a b',
        'a\u0000b',
        'a\nb',
        '../kit',
        'a/b',
        'a--b',
        'a..b',
        '-a',
        'a.',
        'kit_1',
        'k'.repeat(65),
        7,
        null,
      ].map((name) => [`named ${json(name)}`, { 'plugin.json': manifest({ name }), ...aSkill }]),
    ),
  }
  test.each(Object.entries(cases))('%s', async (_, files) => {
    const before = await blobCount()
    const reply = await installFiles(files)
    expect(outcomeOf(reply)).toBe('400 invalid_plugin')
    expect([reply.body.error.param, reply.body.error.message.length < 600]).toEqual([expect.any(String), true])
    expect(await blobCount()).toBe(before)
    expect((await server.ok('/plugins?q=kit')).data).toEqual([])
  })

  test('a file is text or base64, and not both', async () => {
    for (const file of [
      { path: 'plugin.json' },
      { path: 'a', content: 'x', contentBase64: 'eA==' },
      { path: 'a', contentBase64: '?' },
    ])
      expect(outcomeOf(await install({ bundle: { files: [file] } }))).toBe('400 invalid_plugin')
  })

  test('JSON that is deep is read, and is no harm', async () => {
    const { status, body } = await installFiles({ 'plugin.json': deep, ...aSkill })
    expect([status, why(body)]).toEqual([201, ['field x not_supported']])
    const servers = `{"mcpServers":${'{"a":'.repeat(40_000)}1${'}'.repeat(40_000)}}`
    const other = await installFiles({ ...pluginFiles(), 'mcp.json': servers })
    expect(why(other.body)).toEqual(['mcp_server a invalid_server'])
  })
})

describe('a repository', () => {
  const link = { mode: '120000', content: '../../../etc/passwd' }

  test('with a skill that is none keeps the others, and says why', async () => {
    const bad: Record<string, Tree> = {
      'bad-link': { 'SKILL.md': 'x', link },
      'bad-submodule': { 'SKILL.md': 'x', sub: { mode: '160000', oid: 'a'.repeat(40) } },
      'bad-case': { 'SKILL.md': 'x', 'a.md': 'x', 'A.md': 'x' },
      'bad-path': { 'SKILL.md': 'x', '..': { 'out.md': 'x' } },
      'bad-lfs': { 'SKILL.md': 'x', 'm.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' },
      'bad-many': {
        'SKILL.md': 'x',
        ...Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`f${at}`, 'x'])),
      },
      'bad-matter': { 'SKILL.md': '---\nname: &a x\n---\n' },
      'bad-bomb': { 'SKILL.md': 'x', bomb: Buffer.alloc(25 * 1024 * 1024) },
    }
    const { 'plugin.json': text } = pluginFiles()
    const before = await blobCount()
    const url = repoOf({
      'plugin.json': text,
      'mcp.json': link,
      skills: { ...bad, good: { 'SKILL.md': 'x' }, 'Bad Slug': { 'SKILL.md': 'x' }, agents: { 'SKILL.md': 'x' }, link },
    })
    const { status, body } = await install({ url })
    expect([status, body.skills.map(({ slug }: { slug: string }) => slug)]).toEqual([201, ['good']])
    expect(why(body)).toEqual([
      'mcp_server mcp.json invalid_server',
      'skill Bad Slug invalid_slug',
      'skill agents invalid_slug',
      ...Object.keys(bad)
        .toSorted()
        .map((name) => `skill ${name} invalid_bundle`),
    ])
    expect(await blobCount()).toBe(before + 1)
  }, 60_000)

  test('whose manifest is a link, a submodule or huge, is none', async () => {
    const skills = { notes: { 'SKILL.md': 'x' } }
    for (const entry of [link, { mode: '160000', oid: 'a'.repeat(40) }, Buffer.alloc(10_000_000, ' ')])
      for (const tree of [
        { 'plugin.json': entry, skills },
        { '.claude-plugin': { 'plugin.json': entry }, skills },
      ])
        expect(outcomeOf(await install({ url: repoOf(tree) }))).toBe('400 invalid_plugin')
    expect(outcomeOf(await install({ url: repoOf({ '.claude-plugin': link, skills }) }))).toBe('400 invalid_plugin')
  }, 60_000)

  test('with more than a plugin may have has what fits, and the rest is said', async () => {
    const large = Buffer.alloc(9 * 1024 * 1024)
    const of = (names: readonly string[], more: Tree = {}) =>
      Object.fromEntries(names.map((name) => [name, { 'SKILL.md': 'x', ...more }]))
    const url = repoOf({
      ...treeOf(pluginFiles({ skills: {} })),
      skills: { ...of(['a', 'b', 'c'], { large }), ...of(Array.from({ length: 50 }, (_, at) => `s-${at + 10}`)) },
    })
    const { body } = await install({ url })
    expect(body.skills).toHaveLength(50)
    expect(why(body)).toEqual(['skill c too_much', 'skill s-58 too_much', 'skill s-59 too_much'])
  }, 60_000)

  test.each([
    'ext::sh -c true',
    'file:///etc',
    'ssh://git@example.com/x.git',
    'https://me:hush@example.com/x.git',
    'https://169.254.169.254/x.git',
  ])('at %s is not asked', async (url) => expect(outcomeOf(await install({ url }))).toBe('400 invalid_plugin_source'))
})
