/**
 * Source text that makes a process of root's one of another user, for tests of what permissions forbid. It runs after
 * the modules are loaded: the checkout itself may lie where that user may not go.
 */
export const becomeUser = (id: number): string => `if (process.getuid() === 0) {
  process.setgroups([]); process.setgid(${id}); process.setuid(${id})
}`

export const becomeNobody = becomeUser(65534)
