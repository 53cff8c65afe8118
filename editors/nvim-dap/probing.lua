-- nvim-dap and Probing: put this file into ~/.config/nvim/lua/ and call require("probing").setup()
local M = {}

-- Python processes as `probing list` knows them, for the user to choose from.
local function pick_process()
  local list = vim.json.decode(vim.fn.system({ M.command, "list", "--json" }))
  local co = coroutine.running()
  vim.ui.select(list, {
    prompt = "Python process",
    format_item = function(one)
      local rank = (one.rank ~= nil and one.rank ~= vim.NIL) and ("rank " .. one.rank .. "  ") or ""
      return one.pid .. "  " .. rank .. one.command
    end,
  }, function(one)
    coroutine.resume(co, one and one.pid or require("dap").ABORT)
  end)
  return coroutine.yield()
end

function M.setup(options)
  local dap = require("dap")
  M.command = (options or {}).command or "probing"
  dap.adapters.probing = function(callback, config)
    local at = config.connect
    if at then
      callback({ type = "server", host = at.host or "127.0.0.1", port = at.port })
    else
      callback({ type = "executable", command = M.command, args = { "dap" } })
    end
  end
  dap.configurations.python = dap.configurations.python or {}
  vim.list_extend(dap.configurations.python, {
    { type = "probing", request = "attach", name = "Probing: attach to a process", processId = pick_process },
    {
      type = "probing",
      request = "attach",
      name = "Probing: attach to 127.0.0.1:9922",
      connect = { host = "127.0.0.1", port = 9922 },
    },
    { type = "probing", request = "launch", name = "Probing: launch this file", program = "${file}" },
  })
end

return M
