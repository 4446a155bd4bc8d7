import { homedir, userInfo } from 'node:os'

/** Returns what the system's list of users says; a container may run under a number that is not in it. */
export function account(): { userName: string; shell: string | null } {
  try {
    const { username, shell } = userInfo()
    return { userName: username, shell }
  } catch {
    return { userName: String(process.getuid?.() ?? ''), shell: null }
  }
}

/** Says that neither the environment nor the list of users names a home folder, which libraries ask for as they are loaded; or null. */
export function missingHomeTrouble(): string | null {
  try {
    homedir()
    return null
  } catch {
    return 'svc-device needs a home folder, and this user is not in the list of users. Set HOME.'
  }
}
