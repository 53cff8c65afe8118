-- nvim-dap and Probing: put this file into ~/.config/nvim/lua/ and call require("probing").setup()
local M = {}

-- The id of a process that the user chooses among those that `probing list` knows.
local function pick_process()
  local list = vim.fn.json_decode(vim.fn.system({ M.command, "list", "--json" }))
  local one = require("dap.ui").pick_one(list, "Python process: ", function(one)
    local rank = type(one.rank) == "number" and ("rank " .. one.rank .. "  ") or ""
    return one.pid .. "  " .. rank .. one.command
  end)
  return one and one.pid or require("dap").ABORT
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
      connect = { host = "127.0.0.1", port = 9922 }, -- and token = "...", where the server is another user's or elsewhere
    },
    { type = "probing", request = "launch", name = "Probing: launch this file", program = "${file}" },
  })
end

return M
