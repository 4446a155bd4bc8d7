import type { AgentWarning } from '../../../../../shared/api/agents.ts'
import { sayVariableLeftOut, type VariableLeftOut } from '../../../../../shared/runs/connection-variables.ts'
import { sayLeftOut, type McpLeftOut } from '../../../../../shared/runs/mcp-servers.ts'
import { sayWhyLeftOut, type LeftOutSkill } from '../../../../../shared/runs/skills.ts'

// Findings of the agent doctor about what the workspace gives to runs, and these ones do not get.

export interface DoctorSkill extends LeftOutSkill {
  /** The device whose runs do not get it; null: none of its runs do. */
  device: string | null
}

export interface RunInputFacts {
  /** MCP servers of the workspace that its runs do not get. */
  mcpLeftOut: readonly McpLeftOut[]
  /** MCP servers that its runs get, and whose connection they may not use or that does not work, and why. */
  mcpInVain: readonly { name: string; why: string }[]
  /** Services of connections that its runs are not given by themselves, since neither its owner nor an admin connected them. */
  connectionsRefused: readonly string[]
  variablesLeftOut: readonly VariableLeftOut[]
  /** Skills of the workspace that it has and that its runs do not get. */
  skillsLeftOut: readonly DoctorSkill[]
}

const told = (severity: 'info' | 'warning', code: string, param: string, message: string): AgentWarning => ({
  code,
  severity,
  message,
  param,
})

/** Returns a warning for each reason. */
export function mcpWarnings({ mcpLeftOut }: RunInputFacts): AgentWarning[] {
  const reasons = [...new Set(mcpLeftOut.map(({ reason }) => reason))]
  return reasons.map((reason) => {
    const names = mcpLeftOut.filter((each) => each.reason === reason).map(({ name }) => name)
    const message = `Its runs do not get MCP servers from svc, ${someOf(names)}: ${sayLeftOut(reason)}.`
    return told('warning', 'mcp_server_ignored', 'mcpServers', message)
  })
}
const mostNamed = 10
const someOf = (names: readonly string[]): string =>
  names.slice(0, mostNamed).join(', ') + (names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '')

export function mcpInVainWarnings({ mcpInVain }: RunInputFacts): AgentWarning[] {
  return mcpInVain.slice(0, mostNamed).map(({ name, why }) => {
    const message = `Tools of the MCP server ${name} fail in its runs: ${why}.`
    return told('warning', 'mcp_connection_unusable', 'mcpServers', message)
  })
}

export function connectionWarnings({ connectionsRefused, variablesLeftOut }: RunInputFacts): AgentWarning[] {
  const untrusted = `Its runs are not given connections by themselves, ${someOf([...new Set(connectionsRefused)])}: neither its owner nor a workspace admin signed in. Revoke and connect anew, or give it an MCP server with the connection.`
  const byReason = [...Map.groupBy(variablesLeftOut, ({ reason }) => reason)]
  return [
    ...(connectionsRefused.length === 0 ? [] : [told('warning', 'connection_not_given', 'connections', untrusted)]),
    ...byReason.map(([reason, variables]) => {
      const names = someOf(variables.map(({ name }) => name))
      const message = `Its runs do not get variables of connections, ${names}: ${sayVariableLeftOut(reason)}.`
      return told('info', 'variable_left_out', 'connections', message)
    }),
  ]
}

/** Returns a warning for each reason and device. */
export function skillWarnings({ skillsLeftOut }: RunInputFacts): AgentWarning[] {
  const groups = Map.groupBy(skillsLeftOut, ({ reason, device }) => JSON.stringify([reason, device]))
  return [...groups.values()].map((skills) => {
    const [{ reason, device }] = skills as [DoctorSkill]
    const where = device === null ? 'Its runs' : `Its runs on ${device}`
    const message = `${where} do not get skills of the workspace, ${someOf(skills.map(({ slug }) => slug))}: ${sayWhyLeftOut(reason)}.`
    return told('warning', 'skill_left_out', 'skills', message)
  })
}
