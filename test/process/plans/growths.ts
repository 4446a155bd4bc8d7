import type { Growth, Owners } from './growth.ts'
import { growthsOfKnowledge } from './growths-of-knowledge.ts'
import { growthsOfWork } from './growths-of-work.ts'

/** What a database holds after a year, by the tables that grow. Those to which others refer are first. */
export const growthsOf = (owners: Owners): Record<string, Growth> => ({
  ...growthsOfWork(owners),
  ...growthsOfKnowledge(owners),
})

/** Tables that stay small, and why. Those of the search are judged by its own tests. */
export const smallTables: Readonly<Record<string, string>> = {
  companies: 'one for each customer of an installation',
  workspaces: 'a few for each company',
  workspace_slugs: 'one for each name that a workspace had',
  users: 'people',
  members: 'people',
  oidc_identities: 'people',
  login_tokens: 'a few for each person',
  dashboard_sessions: 'a sweep removes old ones',
  sign_in_links: 'a sweep removes old ones',
  device_grants: 'a sweep removes old ones',
  oidc_attempts: 'a sweep removes old ones',
  code_guesses: 'a sweep removes old ones',
  run_cancellations: 'one for each halt that is not done, which takes seconds',
  unassignments: 'one for each agent that was deleted in the last seconds',
  device_replies: 'a sweep removes old ones',
  devices: 'machines of people',
  folders: 'a few for each device',
  agents: 'a few for each person',
  secrets: 'people type them',
  secret_grants: 'people give them',
  projects: 'people make them',
  project_grants: 'people give them',
  repos: 'people name them',
  repo_bindings: 'people name them',
  automations: 'people make them',
  workflows: 'people write them',
  sandbox_engines: 'engines of an installation',
  warm_sandboxes: 'as many as the operator names, and no more than an engine takes',
  builtin_skill_settings: 'people and agents change them for single agents',
  plugins: 'people install them',
  skills: 'people and agents add them',
  mcp_servers: 'people add them',
  skill_bundles: 'one for each skill, and for two days those that were replaced',
  skill_overrides: 'people say what single agents have',
  skill_shares: 'people make them',
  connections: 'people make them',
  connection_clients: 'people sign in, and a client is used for many sign-ins',
  connection_withdrawals: 'one for each connection that is gone, for some hours at most',
  connection_sign_ins: 'one for each connection at most, and a sweep removes old ones',
  workflow_programs: 'one for each text of a workflow',
  quota_windows: 'one for each account of a provider',
  provider_circuits: 'one for each device and provider',
  run_evidence: 'bounded for each device, and written by one that lies or was away for long',
  rate_limits: 'one for each caller of the last minute',
  server_keys: 'one for each purpose',
  schema_migrations: 'one for each migration',
}
