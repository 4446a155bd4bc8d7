import { join } from 'node:path'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HarnessLaunch, LaunchFacts } from '../adapter.ts'
import { hasCallChecks } from '../../../shared/runs/call-checks.ts'
import { versionedBase } from '../parts/broker-way.ts'
import { asArgs, silent } from './settings.ts'

/**
 * `codex app-server`, driven over its standard input and output. It gets a home of its own that holds links to the person's
 * sign-in, settings, sessions and skills, but not their rules: a command that a person's rule allows would run without
 * being asked, whatever the agent's lists say.
 */
export function codexLaunch(spec: RunSpec, { env, runDir, foldersAround, firstStartDir }: LaunchFacts): HarnessLaunch {
  const home = join(runDir, 'codex')
  const theirs = env['CODEX_HOME'] ?? join(env['HOME'] ?? '/', '.codex')
  const settings = [
    ...always,
    ...throughBroker(spec),
    ...(hasCallChecks(spec) ? [...withoutAGate, untrusted(foldersAround)] : []),
  ]
  return {
    file: 'codex',
    args: ['app-server', ...asArgs(settings)],
    env: { CODEX_HOME: home },
    io: 'pipes',
    files: [],
    copies: firstStartDir === null ? [] : [{ path: home, from: firstStartDir }],
    links: [
      ...['auth.json', 'config.toml', 'AGENTS.md', 'skills', 'prompts'].map((name) => linkOf(home, theirs, name)),
      // A later run goes on with the session in a home of its own.
      { ...linkOf(home, theirs, 'sessions'), isMade: true },
    ],
  }
}

/** It takes the address of its provider from its settings alone. */
function throughBroker({ brokeredModel }: RunSpec): string[] {
  if (brokeredModel == null) return []
  const { provider, variable } = brokeredModel
  const settings = { name: 'OpenAI', base_url: versionedBase(provider), env_key: variable, wire_api: 'responses' }
  const table = Object.entries(settings).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  return ['model_provider="broker"', `model_providers.broker={${table.join(',')}}`]
}

const linkOf = (home: string, theirs: string, name: string) => ({ path: join(home, name), target: join(theirs, name) })

const always = [
  ...silent,
  // A login shell reads the profile again, which may put another `svc` before the run's own.
  'allow_login_shell=false',
  // Variables that look like secrets would be kept from the tools: the run's token, and what the agent was given.
  'shell_environment_policy.inherit="all"',
  'shell_environment_policy.ignore_default_excludes=true',
  // Input to a program that a tool has started is asked about as the program was.
  'features.write_stdin_approval=true',
  // Nobody sits in front of a run; the agent asks people by `svc`.
  'tools.experimental_request_user_input.enabled=false',
]

/** Tools that act without asking first: not there where the agent's lists have a say. */
const withoutAGate = [
  'web_search="disabled"',
  'features.view_image=false',
  'features.image_generation=false',
  // Both bring servers that `config/read` does not name, so their tools could not be told to ask.
  'features.apps=false',
  'features.plugins=false',
  // A skill would bring servers, too.
  'features.skill_mcp_dependency_install=false',
]

/** The settings and rules that a repository brings count only where a person trusts it; they could allow every command. */
function untrusted(folders: readonly string[]): string {
  const projects = folders.map((folder) => `${JSON.stringify(folder)}={trust_level="untrusted"}`)
  return `projects={${projects.join(',')}}`
}
