import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { ServerLeftOut } from '../../../shared/runs/filled-servers.ts'
import { errorEvent } from './error-event.ts'

export const leftOutEvent = ({ name, why }: ServerLeftOut): RunEventBody =>
  errorEvent('mcp_server_left_out', `The run goes without the MCP server ${name}: ${why}.`)
