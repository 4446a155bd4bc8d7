import {
  count,
  first,
  flag,
  pairs,
  person,
  ref,
  say,
  size,
  status,
  text,
  thing,
  time,
  word,
  type Look,
  type Looks,
} from './look.ts'

// Files, connections, MCP servers and secrets.

const file: Look = {
  columns: [
    ['ID', ref('id')],
    ['NAME', text('name')],
    ['SIZE', size('sizeBytes')],
    ['CREATED', time('createdAt')],
    ['TYPE', word('contentType')],
    ['RESTORABLE UNTIL', time('restorableUntil')],
    ['ABOUT', text('description')],
  ],
  title: text('name'),
  under: [size('sizeBytes'), word('contentType')],
  facts: [
    ['ID', ref('id')],
    ['Visible to', word('visibility')],
    ['Owner', ref('ownerUserId')],
    ['Revisions', count('revisionCount')],
    ['Created', time('createdAt')],
    ['Created by', person('createdBy')],
    ['Changed', time('updatedAt')],
    ['Deleted', time('deletedAt')],
    ['Restorable until', time('restorableUntil')],
    ['SHA256', ref('sha256')],
  ],
  sections: [
    { heading: '', text: 'description' },
    { heading: 'Content', text: ['content', 'textPreview'] },
    {
      heading: 'Belongs to',
      rows: 'relations',
      columns: [
        ['KIND', word('entityType')],
        ['ID', ref('entityId')],
        ['ROLE', word('role')],
      ],
    },
  ],
  next: [{ say: 'svc file restore {id}', when: { at: 'deletedAt', is: [true] } }, { say: 'svc file download {id}' }],
}

const bulk: Look = {
  columns: [],
  facts: [],
  sections: [
    {
      heading: '',
      rows: 'results',
      columns: [
        ['FILE', ref('fileId')],
        ['DONE', flag('ok', 'yes', 'no')],
        ['WHY NOT', word('code')],
      ],
    },
  ],
}

const secret: Look = {
  columns: [
    ['ID', ref('id')],
    ['NAME', text('name')],
    ['VARIABLE', ref('envVarName')],
    ['GRANTED TO', person('grantedTo')],
    ['PROVIDER', text('provider')],
    ['CREATED', time('createdAt')],
    ['BY', person('createdBy')],
  ],
  title: text('name'),
  under: [ref('envVarName'), text('provider')],
  facts: [
    ['ID', ref('id')],
    ['Granted to', person('grantedTo')],
    ['Sent to hosts', text('brokerHosts')],
    ['In sandboxes', flag('cloudPlain', 'as it is', 'through the broker')],
    ['Created', time('createdAt')],
    ['Created by', person('createdBy')],
    ['Last shown', time('lastRevealedAt')],
    ['Last shown to', person('lastRevealedBy')],
  ],
  next: [{ say: 'svc secret grant {id} --agent @...' }],
}

const connection: Look = {
  columns: [
    ['ID', ref('id')],
    ['SERVICE', text('integration.label')],
    ['STATUS', status('status', { why: ['statusReason'] })],
    ['ACCOUNT', text('accountLabel')],
    ['OWNER', text('owner.label')],
    ['LAST USED', time('lastUsedAt')],
    ['CREATED', time('createdAt')],
  ],
  title: say('{integration.label}: {accountLabel}'),
  under: [status('status', { why: ['statusReason'] }), text('owner.label')],
  facts: [
    ['ID', ref('id')],
    ['Service', ref('integration.id')],
    ['Scopes', text('grantedScopes')],
    ['Last used', time('lastUsedAt')],
    ['Created', time('createdAt')],
    ['Changed', time('updatedAt')],
  ],
  next: [{ say: 'svc connection reauthorize {id}', when: { at: 'status', is: ['expired', 'pending'] } }],
}

export const thingLooks: Looks = {
  FileSummary: file,
  File: file,
  FileUrl: {
    columns: [],
    facts: [
      ['Address', ref('url')],
      ['Expires', time('expiresAt')],
    ],
  },
  FileRevision: {
    columns: [
      ['ID', ref('id')],
      ['VERSION', count('version')],
      ['AUTHOR', person('author')],
      ['WHEN', time('createdAt')],
      ['SIZE', size('sizeBytes')],
      ['SHA256', text('sha256')],
    ],
  },
  FileRelation: {
    columns: [
      ['ID', ref('id')],
      ['KIND', word('entityType')],
      ['BELONGS TO', ref('entityId')],
      ['ROLE', word('role')],
      ['SINCE', time('createdAt')],
    ],
  },
  FileBulkResult: bulk,
  'files.bulkRelate': bulk,
  Secret: secret,
  'secrets.reveal': {
    columns: [],
    facts: [
      ['ID', ref('id')],
      ['Name', text('name')],
      ['Value', text('value')],
    ],
  },
  ConnectionSummary: connection,
  Connection: {
    ...connection,
    facts: [
      ...(connection.facts ?? []),
      ['Signs in by', word('auth.kind')],
      ['Sign-in ends', time('auth.expiresAt')],
      ['Fields', text('auth.fieldNames')],
      ['Offers', word('availableSurfaces')],
    ],
  },
  ConnectionSetupResult: {
    columns: [],
    title: first(say('{connection.integration.label}: {connection.accountLabel}'), word('status')),
    under: [status('status')],
    facts: [
      ['ID', ref('connection.id')],
      ['Open in a browser', ref('nextStep.authorizeUrl')],
    ],
    sections: [
      {
        heading: 'Fields to give with --api-key-fields',
        rows: 'nextStep.fields',
        columns: [
          ['NAME', ref('name')],
          ['NEEDED', flag('required', 'yes', 'no')],
          ['LABEL', text('label')],
        ],
      },
    ],
  },
  McpServer: {
    columns: [
      ['ID', ref('id')],
      ['NAME', text('name')],
      ['TRANSPORT', word('transport')],
      ['ADDRESS', text('url', 'command')],
      ['OF', first(thing('agent', 'agentId'), ref('pluginId'), say('everybody'))],
      ['CREATED', time('createdAt')],
    ],
    title: text('name'),
    under: [word('transport'), flag('trustSkills', 'its skills are trusted')],
    facts: [
      ['ID', ref('id')],
      ['Agent', thing('agent', 'agentId')],
      ['Plugin', ref('pluginId')],
      ['Address', ref('url')],
      ['Command', text('command')],
      ['Arguments', text('args')],
      ['Headers', pairs('headers')],
      ['Variables', pairs('env')],
      ['Connection', ref('connectionId')],
      ['Created', time('createdAt')],
      ['Created by', person('createdBy')],
      ['Changed', time('updatedAt')],
    ],
    next: [{ say: 'svc mcp tools {id}' }],
  },
  McpTool: {
    columns: [
      ['NAME', ref('name')],
      ['ONLY READS', flag('annotations.readOnlyHint', 'yes', 'no')],
      ['DESTROYS', flag('annotations.destructiveHint', 'yes', 'no')],
      ['ABOUT', text('title', 'description')],
    ],
  },
}
