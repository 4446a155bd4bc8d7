import { z } from 'zod'
import { runRepo } from '../runs/repo.ts'
import { changedFile, changeSet } from '../device/change-set.ts'
import { harnessSettings, harnessNames } from '../runs/harnesses.ts'
import { mcpLeftOutReasons } from '../runs/mcp-servers.ts'
import { reasoningEfforts, toolPermissions } from '../runs/spec.ts'
import { wallActs, wallOutcomes } from '../runs/wall-acts.ts'
import { networkDecisions } from '../runs/network.ts'
import { runId, timestamp } from './ids.ts'
import { defineRoute } from './route.ts'
import { runParams, runPositional } from './runs.ts'

// Records of a run: its prompt, its setup, its changes and its output.

export const runContext = z.object({ prompt: z.string() }).meta({ id: 'RunContext' })

export const runManifest = z
  .object({
    runId,
    agent: z.object({ id: z.string(), handle: z.string(), name: z.string() }),
    harness: z.enum(harnessNames),
    harnessVersion: z
      .string()
      .nullable()
      .describe('Of its program; null while the run works, and where the device did not tell it.'),
    model: z.string().nullable(),
    backupModel: z.string().nullable(),
    reasoningEffort: z.enum(reasoningEfforts).nullable(),
    maxTurns: z.number().int().nullable(),
    ignored: z.array(z.enum(harnessSettings)).describe('Those of the settings above that the harness has nothing for.'),
    folder: z.object({ shortId: z.string(), rootPath: z.string() }).nullable().describe('null: the home folder.'),
    repo: runRepo
      .omit({ address: true })
      .optional()
      .describe('Of a cloud run: the repository that it works on, and where its work is pushed.'),
    rules: z.array(z.string()).describe('Rules the run was given beside its AGENT.md.'),
    instructions: z
      .array(z.object({ name: z.string(), sha256: z.string() }))
      .describe(
        'All texts that the run was given beside its prompt, in their order, with the hash of each: AGENT.md too.',
      ),
    skills: z
      .array(z.object({ id: z.string(), name: z.string(), version: z.string().nullable() }))
      .describe(
        "Skills from the agent's folders and, with `workspace/` before their name, those of the workspace, as the device told when the run began; `version` changes with SKILL.md and the list of its files.",
      ),
    skillsLeftOut: z
      .array(z.object({ name: z.string(), reason: z.string().describe('In words.') }))
      .describe('Skills of the workspace that its agent has and the run was not given, as the device told.'),
    permissions: toolPermissions,
    mcpServers: z
      .object({
        given: z.array(z.string()),
        leftOut: z.array(z.object({ name: z.string(), reason: z.enum(mcpLeftOutReasons) })),
      })
      .describe("Names of the workspace's MCP servers; `leftOut` names the first 100 that the run was not given."),
    envKeys: z.array(z.string()).describe('Names of the environment variables; never their values.'),
    envKeysLeftOut: z
      .array(z.object({ name: z.string(), reason: z.string().describe('In words.') }))
      .describe(
        'Variables of connections that the run was not given, and of secrets, of which none enters a sandbox. Those that its device could not have are in its log.',
      ),
    wall: z
      .array(
        z.object({
          act: z.enum(wallActs),
          outcome: z
            .enum(wallOutcomes)
            .describe('`not_applicable`: it is allowed where the run works, or nothing is there to try it on.'),
          seen: z.string().describe('What was tried, and what the system answered.'),
        }),
      )
      .nullable()
      .describe(
        'Acts that the run must not be able to do, as its runner tried them before the first instruction. A run for which one of them was `not_refused` ended as `dispatch_error`. null: it has not begun, has no wall, or its device did not tell.',
      ),
    outputSchemas: z
      .record(z.string(), z.record(z.string(), z.unknown()))
      .describe("JSON Schemas that the run's output may name: its own, and those of the runs it continues."),
  })
  .meta({ id: 'RunManifest' })
export type RunManifest = z.infer<typeof runManifest>

export const runChangeSet = z
  .object({
    runId,
    base: changeSet.shape.base.describe('The commit the run began on.'),
    head: changeSet.shape.head,
    files: z.array(changedFile),
    additions: z.number().int(),
    deletions: z.number().int(),
    diff: z.string().describe('Unified diff, as `git apply` reads it.'),
    live: z.boolean().describe('true: taken just now while the run works; false: taken at its end.'),
    sharedWith: z
      .array(runId)
      .describe(
        'Runs that worked in the folder at the same time, or in one around or within it, as the device told: what they changed may be in here, too.',
      ),
    capturedAt: timestamp,
  })
  .meta({ id: 'RunChangeSet' })
export type RunChangeSet = z.infer<typeof runChangeSet>

export const runNetwork = z
  .object({
    runId,
    hosts: z
      .array(
        z.object({
          host: z
            .string()
            .describe('`svc`: this server; `*`: hosts beyond the first 200; `-`: none that could be read.'),
          decision: z.enum(networkDecisions).describe('`failed`: it was let through and did not come about.'),
          requests: z.number().int(),
          bytesSent: z.number().int().describe('By the sandbox.'),
          bytesReceived: z.number().int(),
          firstAt: timestamp,
          lastAt: timestamp,
        }),
      )
      .describe('First asked first.'),
  })
  .meta({ id: 'RunNetwork' })
export type RunNetwork = z.infer<typeof runNetwork>

export const runRecordRoutes = {
  context: defineRoute({
    id: 'runs.context',
    endpoint: 'GET /runs/{runId}/context',
    summary: 'Read the prompt the harness received',
    params: runParams,
    reply: runContext,
    errors: ['run.context_not_stored'],
    cli: { command: 'run context', positionals: [runPositional], example: 'svc run context current' },
  }),

  manifest: defineRoute({
    id: 'runs.manifest',
    endpoint: 'GET /runs/{runId}/manifest',
    summary: "Read the run's setup: rules, skills, permissions, names of environment variables",
    params: runParams,
    reply: runManifest,
    errors: ['run.manifest_not_pinned'],
    cli: { command: 'run manifest', positionals: [runPositional], example: 'svc run manifest current' },
  }),

  network: defineRoute({
    id: 'runs.network',
    endpoint: 'GET /runs/{runId}/network',
    summary: 'Read what a cloud run asked for through the broker of its sandbox, by host',
    description: 'Empty for a run on a device, which svc does not watch. It lags behind a live run by a second.',
    params: runParams,
    reply: runNetwork,
    cli: { command: 'run network', positionals: [runPositional], example: 'svc run network current' },
  }),

  changeSet: defineRoute({
    id: 'runs.changeSet',
    endpoint: 'GET /runs/{runId}/change-set',
    summary: 'Read what the run changed: the diff against the commit it began on',
    params: runParams,
    reply: runChangeSet,
    errors: ['source_unknown', 'repo_unavailable', 'too_large', 'diff_unavailable'],
    cli: [
      {
        command: 'run change-set',
        positionals: [runPositional],
        flags: { patch: { kind: 'boolean', description: 'Print the diff alone, for `git apply`.' } },
        flow: true,
        example: 'svc run change-set current --patch',
      },
      {
        command: 'run diff',
        positionals: [
          runPositional,
          {
            name: 'path',
            target: null,
            isOptional: true,
            variadic: true,
            description: 'Only what changed in these files and folders, from the top level of the repository.',
          },
        ],
        flags: {
          stat: { kind: 'boolean', description: 'Print how many lines of each file changed.' },
          'name-only': { kind: 'boolean', description: 'Print the names of the changed files alone.' },
        },
        flow: true,
        example: 'svc run diff run_3nB7cW1yHsD5jK9q src --stat',
      },
    ],
  }),

  output: defineRoute({
    id: 'runs.output',
    endpoint: 'POST /runs/{runId}/output',
    summary: "Record the run's typed output",
    description:
      'Only with the token of the run itself. With `schema` the data must fit the JSON Schema of that name, which whoever started the run gave with it; without it any JSON is taken, except of a step of a workflow that asks for an output, which must fit that. A later output replaces an earlier one.',
    callers: { person: { refused: 'run_output.not_this_run' }, agent: 'allowed' },
    params: runParams,
    body: z.object({
      schema: z.string().min(1).max(200).optional().describe('Name of the schema that `data` fits.'),
      data: z.unknown().describe('The output.'),
    }),
    reply: z.object({ runId, recorded: z.literal(true) }),
    errors: ['run_output.not_this_run', 'run_output.run_terminal', 'run_output.invalid'],
    cli: {
      command: 'run output',
      positionals: [{ ...runPositional, default: 'current' }],
      flags: {
        data: { kind: 'json', required: false, description: 'The output as JSON text.' },
        file: { description: 'File with the output as JSON (`-`: standard input).' },
      },
      flow: true,
      example: 'svc run output --file result.json',
    },
  }),

  outputGet: defineRoute({
    id: 'runs.output.get',
    endpoint: 'GET /runs/{runId}/output',
    summary: 'Read the typed output that the run recorded last',
    params: runParams,
    reply: z
      .object({
        runId,
        schema: z.string().nullable().describe('Name of the schema that the data fits; null: none was named.'),
        data: z.unknown(),
        recordedAt: timestamp,
      })
      .meta({ id: 'RunOutput' }),
    cli: { command: 'run result', positionals: [runPositional], example: 'svc run result run_3nB7cW1yHsD5jK9q' },
  }),
} as const
