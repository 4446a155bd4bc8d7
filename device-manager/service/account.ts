import { ServiceError } from './service-error.ts'
import type { RunTool } from './tool.ts'

/** An account of this machine, for which root installs a service. */
export interface ServiceAccount {
  name: string
  uid: number
  gid: number
  homeDir: string
  shell: string
}

/** Looks an account up where the system does: it may be in no file. */
export async function findAccount(name: string, run: RunTool): Promise<ServiceAccount> {
  // systemd reads names in its own way, and the name is a part of that of a file.
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(name))
    throw new ServiceError(
      'no_such_account',
      `${JSON.stringify(name)} is no name of an account.`,
      makeOne('svc-agents'),
    )
  const { stdout } = await run('getent', ['passwd', name])
  const [found, , uid, gid, , homeDir, shell] = stdout.split('\n')[0]?.split(':') ?? []
  if (found !== name || !/^\d+$/.test(uid ?? '') || !/^\d+$/.test(gid ?? ''))
    throw new ServiceError('no_such_account', `There is no account ${name}.`, makeOne(name))
  if (
    homeDir === undefined ||
    !homeDir.startsWith('/') ||
    homeDir === '/' ||
    /^\/(?:nonexistent|dev\/null)$/.test(homeDir)
  )
    throw new ServiceError(
      'no_such_account',
      `The account ${name} has no home folder, in which its device and its agents could keep things.`,
      'Give it one, or make another account: ' + useradd('svc-agents'),
    )
  return { name, uid: Number(uid), gid: Number(gid), homeDir, shell: shell ?? '' }
}

const useradd = (name: string) => `sudo useradd --create-home --shell /bin/bash ${name}`
const makeOne = (name: string) => `Make one that is for agents alone: ${useradd(name)}`

/** The shell that its harnesses get their environment from; one that lets nobody in cannot be asked. */
export const shellOf = ({ shell }: ServiceAccount): string =>
  shell === '' || /\/(?:nologin|false|true)$/.test(shell) ? '/bin/sh' : shell
