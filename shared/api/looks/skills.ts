import { count, first, flag, person, ref, say, size, text, time, word, type Look, type Looks } from './look.ts'

// Skills, plugins and the services that connections are made to.

const skill: Look = {
  columns: [
    ['ID', ref('id')],
    ['SLUG', ref('slug')],
    ['FOR ALL', flag('enabledByDefault', 'yes', 'no')],
    ['FROM', text('plugin.name', 'sourceType')],
    ['ABOUT', text('description')],
    ['VERSION', count('version')],
    ['FILES', count('fileCount')],
    ['SIZE', size('totalBytes')],
    ['CHANGED', time('updatedAt')],
    ['NAME', text('name')],
  ],
  title: text('name'),
  under: [
    ref('slug'),
    say('version {version}'),
    flag('enabledByDefault', 'for all agents', 'for those that it is given to'),
  ],
  facts: [
    ['ID', ref('id')],
    ['Source', first(text('source.label'), word('sourceType'))],
    ['Plugin', first(say('{plugin.name} ({plugin.id})'))],
    ['Unavailable', word('unavailableReason')],
    ['Size', size('totalBytes')],
    ['Tokens', count('skillMdTokenCount')],
    ['Allowed tools', text('activation.allowedTools')],
    ['Shared as', ref('share.latestShareId')],
    ['Installed', time('installedAt')],
    ['Changed', time('updatedAt')],
  ],
  sections: [
    { heading: '', text: 'description' },
    {
      heading: 'Files',
      rows: 'files',
      columns: [
        ['PATH', ref('path')],
        ['KIND', word('kind')],
        ['SIZE', size('sizeBytes')],
        ['RUNS', flag('executable', 'yes', 'no')],
      ],
    },
  ],
}

const override: Look = {
  columns: [
    ['SKILL', ref('slug')],
    ['EFFECT', flag('effectiveEnabled', 'on', 'off')],
    ['AGENT', flag('enabled', 'on', 'off')],
    ['WORKSPACE', flag('workspaceEnabled', 'on', 'off')],
    ['PLUGIN', flag('pluginEnabled', 'on', 'off')],
    ['ID', ref('skillId')],
    ['NAME', text('name')],
  ],
  title: text('name'),
}

const plugin: Look = {
  columns: [
    ['ID', ref('id')],
    ['NAME', text('name')],
    ['STATE', flag('enabled', 'enabled', 'disabled')],
    ['VERSION', text('version')],
    ['ABOUT', text('description')],
    ['SOURCE', text('source.url')],
    ['CHANGED', time('updatedAt')],
    ['BY', person('installedBy')],
  ],
  title: text('name'),
  under: [flag('enabled', 'enabled', 'disabled'), text('version'), word('format')],
  facts: [
    ['ID', ref('id')],
    ['Source', text('source.url')],
    ['Folder', text('source.subdir')],
    ['Ref', text('source.ref')],
    ['Commit', ref('source.resolvedSha')],
    ['Installed', time('installedAt')],
    ['Installed by', person('installedBy')],
    ['Changed', time('updatedAt')],
  ],
  sections: [
    { heading: '', text: 'description' },
    {
      heading: 'Skills',
      rows: 'skills',
      columns: [
        ['SLUG', ref('slug')],
        ['ABOUT', text('description')],
        ['ID', ref('id')],
      ],
    },
    {
      heading: 'MCP servers',
      rows: 'mcpServers',
      columns: [
        ['NAME', ref('name')],
        ['TRANSPORT', word('transport')],
        ['ADDRESS', text('url', 'command')],
        ['ID', ref('id')],
      ],
    },
    {
      heading: 'Not used',
      rows: 'notUsed',
      columns: [
        ['KIND', word('kind')],
        ['NAME', text('name')],
        ['WHY', text('message')],
      ],
    },
  ],
  next: [{ say: 'svc plugin enable {id}', when: { at: 'enabled', is: [false] } }],
}

export const skillLooks: Looks = {
  SkillSummary: skill,
  Skill: skill,
  SkillOverride: override,
  SkillRepoInstall: {
    columns: [],
    title: say('{installed} skills installed'),
    facts: [['Commit', ref('resolvedSha')]],
    sections: [
      {
        heading: '',
        rows: 'installed',
        columns: [
          ['ID', ref('id')],
          ['SLUG', ref('slug')],
          ['ABOUT', text('description')],
        ],
      },
      {
        heading: 'Skipped',
        rows: 'skipped',
        columns: [
          ['SKILL', ref('slug', 'path')],
          ['WHY', word('reason')],
          ['MESSAGE', text('message')],
        ],
      },
    ],
  },
  NewSkillShare: {
    columns: [],
    facts: [
      ['ID', ref('id')],
      ['Address', ref('url')],
      ['Token', ref('token')],
      ['Expires', time('expiresAt')],
      ['Created', time('createdAt')],
    ],
  },
  PluginSummary: plugin,
  Plugin: plugin,
  CatalogService: {
    columns: [
      ['ID', ref('id')],
      ['NAME', text('label')],
      ['SIGNS IN BY', word('authKind')],
      ['ABOUT', text('description')],
    ],
  },
}
