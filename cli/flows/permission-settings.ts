import { CliError } from '../errors/cli-error.ts'
import type { Client } from '../calls/client.ts'
import { pathSegment } from '../http/path-segment.ts'
import { fieldAt, textAt } from '../replies/fields.ts'
import { agentConfig } from '../../shared/api/agent-config.ts'
import { companyConfig } from '../../shared/api/workspaces.ts'
import { effectivePermissions } from '../../shared/runs/spec.ts'

/** Lists and mode as the server puts them into the next run, and how a command is spoken to. */
export async function permissionSettings(client: Client, { agent, ref }: { agent: unknown; ref: string }) {
  const { body: settings } = await client.call({ method: 'GET', path: `/api/v1/agents/${ref}/config` })
  const workspace = pathSegment(textAt(agent, 'workspaceId') ?? '')
  const { body: defaults } = await client.call({ method: 'GET', path: `/api/v1/companies/${workspace}/company-config` })
  const tools = agentConfig.shape.permissions.shape.tools.safeParse(fieldAt(settings, 'config', 'permissions', 'tools'))
  const inherited = companyConfig.pick({ toolPermissionDefault: true }).safeParse(defaults)
  if (!tools.success || !inherited.success)
    throw new CliError('unexpected_reply', "The server's answer holds no permissions that this svc understands.", {
      exit: 'unreachable',
    })
  return {
    permissions: effectivePermissions(tools.data, inherited.data),
    /** Whose mode it is. */
    modeFrom: modeFrom(tools.data.defaultMode, inherited.data.toolPermissionDefault),
    protocol: textAt(settings, 'config', 'runtime', 'protocol'),
  }
}

function modeFrom(own: unknown, inherited: unknown): 'agent' | 'workspace' | 'default' {
  if (own !== null) return 'agent'
  return inherited === null ? 'default' : 'workspace'
}
