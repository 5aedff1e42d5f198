#loc = loc("kernels.py":133:0)
#loc1 = loc(unknown)
#loc8 = loc("kernel.mlir":17:23)
#loc9 = loc("kernel.mlir":17:35)
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<i32>, !tt.ptr<i32>, i32) -> (), sym_name = "collatz", sym_visibility = "public"}> ({
  ^bb0(%arg0: !tt.ptr<i32> loc("kernels.py":133:0), %arg1: !tt.ptr<i32> loc("kernels.py":133:0), %arg2: i32 loc("kernels.py":133:0)):
    %0 = "arith.constant"() <{value = 3 : i32}> : () -> i32 loc(#loc1)
    %1 = "arith.constant"() <{value = 2 : i32}> : () -> i32 loc(#loc1)
    %2 = "arith.constant"() <{value = 1 : i32}> : () -> i32 loc(#loc1)
    %3 = "arith.constant"() <{value = 0 : i32}> : () -> i32 loc(#loc1)
    %4 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32 loc(#loc2)
    %5 = "arith.cmpi"(%4, %arg2) <{predicate = 5 : i64}> : (i32, i32) -> i1 loc(#loc3)
    "cf.cond_br"(%5)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> () loc(#loc3)
  ^bb1:  // pred: ^bb0
    "tt.return"() : () -> () loc(#loc4)
  ^bb2:  // pred: ^bb0
    %6 = "tt.addptr"(%arg0, %4) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32> loc(#loc5)
    %7 = "tt.load"(%6) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32, isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32 loc(#loc6)
    %8:2 = "scf.while"(%7, %3) ({
    ^bb0(%arg5: i32 loc("kernel.mlir":17:23), %arg6: i32 loc("kernel.mlir":17:35)):
      %17 = "arith.cmpi"(%arg5, %2) <{predicate = 4 : i64}> : (i32, i32) -> i1 loc(#loc10)
      "scf.condition"(%17, %arg5, %arg6) : (i1, i32, i32) -> () loc(#loc10)
    }, {
    ^bb0(%arg3: i32 loc(unknown), %arg4: i32 loc(unknown)):
      %10 = "arith.remsi"(%arg3, %1) : (i32, i32) -> i32 loc(#loc11)
      %11 = "arith.cmpi"(%10, %3) <{predicate = 0 : i64}> : (i32, i32) -> i1 loc(#loc12)
      %12 = "scf.if"(%11) ({
        %16 = "arith.divsi"(%arg3, %1) : (i32, i32) -> i32 loc(#loc14)
        "scf.yield"(%16) : (i32) -> () loc(#loc14)
      }, {
        %14 = "arith.muli"(%arg3, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc15)
        %15 = "arith.addi"(%14, %2) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc16)
        "scf.yield"(%15) : (i32) -> () loc(#loc16)
      }) : (i1) -> i32 loc(#loc13)
      %13 = "arith.addi"(%arg4, %2) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc17)
      "scf.yield"(%12, %13) : (i32, i32) -> () loc(#loc18)
    }) : (i32, i32) -> (i32, i32) loc(#loc7)
    %9 = "tt.addptr"(%arg1, %4) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32> loc(#loc19)
    "tt.store"(%9, %8#1) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> () loc(#loc20)
    "tt.return"() : () -> () loc(#loc21)
  }) {noinline = false} : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc2 = loc("kernels.py":135:28)
#loc3 = loc("kernels.py":136:18)
#loc4 = loc("kernels.py":137:8)
#loc5 = loc("kernels.py":138:24)
#loc6 = loc("kernels.py":138:20)
#loc7 = loc("kernels.py":140:4)
#loc10 = loc("kernels.py":140:18)
#loc11 = loc("kernels.py":141:19)
#loc12 = loc("kernels.py":141:24)
#loc13 = loc("kernels.py":141:11)
#loc14 = loc("kernels.py":142:29)
#loc15 = loc("kernels.py":144:24)
#loc16 = loc("kernels.py":144:32)
#loc17 = loc("kernels.py":145:17)
#loc18 = loc("kernels.py":145:8)
#loc19 = loc("kernels.py":146:21)
#loc20 = loc("kernels.py":146:30)
#loc21 = loc("kernels.py":146:4)

