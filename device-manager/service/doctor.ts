import { harnesses } from '../../shared/runs/harnesses.ts'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { ServiceProblem, ServiceValue } from '../../shared/device/service.ts'
import { installedText, type ServiceContext } from './context.ts'
import { realPathOf } from './definition.ts'
import { lingeringProblem } from './linger.ts'
import { isCrashLoop } from './restart-pace.ts'
import { ServiceError } from './service-error.ts'
import type { ServiceState } from './service-manager.ts'
import type { InstalledService } from './systemd-unit.ts'

/** Reports how the service is, and what about it should be mended. It changes nothing and asks only what an installed one has to answer. */
export async function status(context: ServiceContext): Promise<ServiceValue<'status'>> {
  const { manager } = context
  const text = installedText(context)
  const { kind, file, account } = manager
  const known = { manager: kind, file, account, installed: text !== null }
  const nothing = { enabled: null, running: null, pid: null, lingering: null, problems: [] }
  if (text === null) return { ...known, ...nothing }
  const installed = manager.read(text)
  const ofFile = installed === null ? [unreadable(context)] : fileProblems(context, installed)
  if (installed !== null && installed.stateDir !== context.places.stateDir)
    return { ...known, ...nothing, problems: ofFile }
  try {
    await manager.reach()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const problem = { code: 'no_service_manager' as const, message: error.message, fix: error.remediation }
    return { ...known, ...nothing, problems: [...ofFile, problem] }
  }
  const state = await manager.state()
  const lingering = await manager.lingering()
  const { enabled, running, pid } = state
  const problems = [...ofFile, ...(await stateProblems(context, state)), ...lingeringProblem(lingering)]
  return { ...known, enabled, running, pid, lingering, problems }
}

const installAgain = ({ manager: { account } }: ServiceContext) =>
  account === null ? 'svc device install-service' : `sudo svc device install-service --system --user ${account}`

const unreadable = (context: ServiceContext): ServiceProblem => ({
  code: 'unreadable',
  message: `The service in ${context.manager.file} was not written by svc, or was changed since.`,
  fix: installAgain(context),
})

/** Finds what the file names and the machine does not have, or has elsewhere by now. */
function fileProblems(context: ServiceContext, installed: InstalledService): ServiceProblem[] {
  const { places, definition } = context
  if (installed.stateDir !== places.stateDir)
    return [
      {
        code: 'state_dir_differs',
        message: `The service is that of another device of yours, in ${installed.stateDir}.`,
        fix: `SVC_STATE_DIR='${installed.stateDir}' svc device status`,
      },
    ]
  const problems: ServiceProblem[] = []
  const say = (code: ServiceProblem['code'], message: string) =>
    problems.push({ code, message, fix: installAgain(context) })
  if (!isProgram(installed.node)) say('node_missing', `The Node that the service starts is gone: ${installed.node}.`)
  const main = realPathOf(installed.main)
  if (main === null) say('main_missing', `The program that the service starts is gone: ${installed.main}.`)
  else if (main !== realPathOf(definition.main))
    say('program_changed', `The service starts another installation of svc than this one: ${installed.main}.`)
  const missing = missingPrograms(installed.path, definition.env['PATH'] ?? '')
  if (missing.length > 0)
    say(
      'path_changed',
      `Your PATH has changed since the service was installed; it does not find ${missing.join(', ')}.`,
    )
  return problems
}

/** The programs that harnesses and change-sets are made with. */
const programs = ['git', ...Object.values(harnesses).flatMap((harness) => harness.programs)]

function missingPrograms(servicePath: string, currentPath: string): string[] {
  return programs.flatMap((name) => {
    const found = findIn(currentPath, name)
    return found !== null && findIn(servicePath, name) === null ? [`${name} (${found})`] : []
  })
}

const findIn = (path: string, name: string) =>
  path
    .split(delimiter)
    .map((directory) => join(directory, name))
    .find(isProgram) ?? null

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

async function stateProblems(context: ServiceContext, state: ServiceState): Promise<ServiceProblem[]> {
  const { manager } = context
  const problems: ServiceProblem[] = []
  const { daemon, starts } = await context.state.look()
  const crashes = starts - (state.running ? 1 : 0)
  const when = manager.account === null ? 'at your next login' : 'with the machine'
  if (!state.loaded || !state.enabled) {
    const message = `${manager.kind} does not start the service ${when}.`
    problems.push({ code: 'not_enabled', message, fix: installAgain(context) })
  }
  const restart =
    manager.account === null ? 'svc device restart' : `sudo systemctl restart svc-device@${manager.account}`
  if (isCrashLoop(crashes)) {
    const message = `The device manager ended unexpectedly ${crashes} times in the last hour, so it waits before each start.`
    problems.push({ code: 'crash_loop', message, fix: 'svc device logs' })
  } else if (daemon !== null && daemon.pid !== state.pid) {
    const message = `The device manager that runs (pid ${daemon.pid}) was started by hand, not by the service.`
    problems.push({ code: 'other_daemon', message, fix: restart })
  } else if (state.failed !== null) {
    const message = `The service has given up: its program ended (${state.failed}).`
    problems.push({ code: 'failed', message, fix: manager.output })
  } else if (!state.running) {
    problems.push({ code: 'not_running', message: 'The service is stopped.', fix: restart })
  }
  return problems
}
